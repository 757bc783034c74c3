/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Does this host have the certificates that QEMU needs to send a migration over TLS?
 *
 * libvirt passes QEMU a directory: migrate_tls_x509_cert_dir of qemu.conf; else /etc/pki/libvirt-migrate, if it exists; else
 * default_tls_x509_cert_dir, by default /etc/pki/qemu. The sending QEMU does not start TLS without ca-cert.pem in it. On most
 * hosts only root can read qemu.conf, so it may name another directory. If there is no qemu.conf, libvirtd sees other files
 * than this process, for example from a container. */
#include "libmigrate/virt/certificates.h"

#include "libmigrate/virt/xml.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIGURATION     "/etc/libvirt/qemu.conf"
#define MIGRATE_DIRECTORY "/etc/pki/libvirt-migrate"
#define DEFAULT_DIRECTORY "/etc/pki/qemu"
#define AUTHORITY         "ca-cert.pem"

/* The value of `key = "value"`, or NULL. Lines that begin with '#' do not match. */
static char *find_setting(const char *configuration, const char *key) {
  g_autofree char *pattern = g_strdup_printf("^[ \t]*%s[ \t]*=[ \t]*[\"']([^\"'\n]*)[\"']", key);
  g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_MULTILINE, 0, NULL);
  g_autoptr(GMatchInfo) match = NULL;

  g_regex_match(regex, configuration, 0, &match);
  return g_match_info_matches(match) ? g_match_info_fetch(match, 1) : NULL;
}

/* A missing file may just be hidden from this process, as ProtectHome=tmpfs hides all of /home. */
static MigSight look(const char *root, const char *path) {
  struct stat status;
  bool absent;

  if (stat(path, &status) == 0)
    return MIG_SIGHT_PRESENT;
  absent = errno == ENOENT || errno == ENOTDIR;
  if (strcmp(root, "/") == 0 && mig_storage_may_be_hidden(path))
    return MIG_SIGHT_UNSEEN;
  return absent ? MIG_SIGHT_ABSENT : MIG_SIGHT_UNSEEN;
}

static MigSight look_for_authority(const char *root, const char *directory) {
  g_autofree char *path = g_build_filename(root, directory, AUTHORITY, NULL);

  return look(root, path);
}

/* NULL: not readable. */
static char *read_configuration(const char *root) {
  g_autofree char *path = g_build_filename(root, CONFIGURATION, NULL);
  char *text = NULL;

  return g_file_get_contents(path, &text, NULL, NULL) ? text : NULL;
}

static MigSight look_by_default(const char *root, const char *fallback) {
  g_autofree char *path = g_build_filename(root, MIGRATE_DIRECTORY, NULL);

  switch (look(root, path)) {
  case MIG_SIGHT_PRESENT:
    return look_for_authority(root, MIGRATE_DIRECTORY);
  case MIG_SIGHT_ABSENT:
    return look_for_authority(root, fallback);
  default:
    return MIG_SIGHT_UNSEEN;
  }
}

MigSight mig_certificates_look(const char *root) {
  g_autofree char *configuration = read_configuration(root);
  g_autofree char *migrate = NULL, *fallback = NULL;

  if (!configuration)
    return look_by_default(root, DEFAULT_DIRECTORY) == MIG_SIGHT_PRESENT ? MIG_SIGHT_PRESENT
                                                                         : MIG_SIGHT_UNSEEN;
  migrate = find_setting(configuration, "migrate_tls_x509_cert_dir");
  if (migrate)
    return look_for_authority(root, migrate);
  fallback = find_setting(configuration, "default_tls_x509_cert_dir");
  return look_by_default(root, fallback ? fallback : DEFAULT_DIRECTORY);
}
