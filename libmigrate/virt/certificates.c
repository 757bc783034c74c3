/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether this host has what QEMU's TLS takes to send a migration.
 *
 * libvirt gives QEMU a directory: migrate_tls_x509_cert_dir of qemu.conf, else /etc/pki/libvirt-migrate if there is one, else
 * default_tls_x509_cert_dir, which is /etc/pki/qemu if nothing is said. The sending QEMU does not start TLS without ca-cert.pem
 * in it. qemu.conf is root's on most hosts, and then a directory of another name may be meant; where there is none, libvirtd sees
 * other files than this process, as from a container. */
#include "libmigrate/virt/certificates.h"

#include "libmigrate/virt/xml.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CONFIGURATION     "/etc/libvirt/qemu.conf"
#define MIGRATE_DIRECTORY "/etc/pki/libvirt-migrate"
#define DEFAULT_DIRECTORY "/etc/pki/qemu"
#define AUTHORITY         "ca-cert.pem"

/* The value of `key = "value"`, or NULL. Comments begin with '#'. */
static char *find_setting(const char *configuration, const char *key) {
  g_autofree char *pattern = g_strdup_printf("^[ \t]*%s[ \t]*=[ \t]*[\"']([^\"'\n]*)[\"']", key);
  g_autoptr(GRegex) regex = g_regex_new(pattern, G_REGEX_MULTILINE, 0, NULL);
  g_autoptr(GMatchInfo) match = NULL;

  g_regex_match(regex, configuration, 0, &match);
  return g_match_info_matches(match) ? g_match_info_fetch(match, 1) : NULL;
}

/* What is not there may be hidden from this process, as all of /home is by ProtectHome=tmpfs. */
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

/* NULL: it cannot be read. */
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
