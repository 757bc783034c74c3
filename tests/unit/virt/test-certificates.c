/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where libvirt lets QEMU look for certificates, and whether they are there. */
#include "libmigrate/virt/certificates.h"
#include "tests/unit/core/rows.h"

#include <ftw.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Row {
  const char *name;
  const char *configuration; /* of qemu.conf; NULL: there is none */
  const char *files[2];
  MigSight sight;
} Row;

static const Row rows[] = {
    {"nothing is there, not even libvirt's configuration: it is elsewhere", NULL, {NULL}, MIG_SIGHT_UNSEEN},
    {"what libvirt's package brings has no certificates",
     "#default_tls_x509_cert_dir = \"/etc/pki/qemu\"\n",
     {NULL},
     MIG_SIGHT_ABSENT},
    {"they are where QEMU has all of its own", "", {"etc/pki/qemu/ca-cert.pem"}, MIG_SIGHT_PRESENT},
    {"they are there, whatever may be configured", NULL, {"etc/pki/qemu/ca-cert.pem"}, MIG_SIGHT_PRESENT},
    {"a directory without the authority's", "", {"etc/pki/qemu/server-cert.pem"}, MIG_SIGHT_ABSENT},
    {"those of migrations go first", "", {"etc/pki/libvirt-migrate/ca-cert.pem"}, MIG_SIGHT_PRESENT},
    {"a directory for migrations alone counts, and has none",
     "",
     {"etc/pki/libvirt-migrate/other", "etc/pki/qemu/ca-cert.pem"},
     MIG_SIGHT_ABSENT},
    {"a directory by name",
     "user = \"root\"\n  migrate_tls_x509_cert_dir = \"/srv/tls\"\n",
     {"srv/tls/ca-cert.pem"},
     MIG_SIGHT_PRESENT},
    {"a directory by name goes before all others",
     "migrate_tls_x509_cert_dir=\"/srv/tls\"\n",
     {"etc/pki/libvirt-migrate/ca-cert.pem", "etc/pki/qemu/ca-cert.pem"},
     MIG_SIGHT_ABSENT},
    {"another default",
     "default_tls_x509_cert_dir = \"/srv/all\"\n",
     {"srv/all/ca-cert.pem"},
     MIG_SIGHT_PRESENT},
    {"another default is not where it was",
     "default_tls_x509_cert_dir = \"/srv/all\"\n",
     {"etc/pki/qemu/ca-cert.pem"},
     MIG_SIGHT_ABSENT},
    {"a commented line says nothing",
     "# migrate_tls_x509_cert_dir = \"/srv/tls\"\n",
     {"etc/pki/qemu/ca-cert.pem"},
     MIG_SIGHT_PRESENT},
};

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw) {
  return remove(path);
}

static void put(const char *root, const char *path, const char *text) {
  g_autofree char *whole = g_build_filename(root, path, NULL);
  g_autofree char *directory = g_path_get_dirname(whole);

  assert_int_equal(g_mkdir_with_parents(directory, 0700), 0);
  assert_true(g_file_set_contents(whole, text, -1, NULL));
}

static void is_seen(void **state) {
  const Row *row = *state;
  g_autofree char *root = g_dir_make_tmp("certificates-XXXXXX", NULL);
  MigSight sight;

  assert_non_null(root);
  if (row->configuration)
    put(root, "etc/libvirt/qemu.conf", row->configuration);
  for (size_t i = 0; i < G_N_ELEMENTS(row->files) && row->files[i]; i++)
    put(root, row->files[i], "");
  sight = mig_certificates_look(root);
  nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  assert_int_equal(sight, row->sight);
}

/* qemu.conf is a directory: nobody can read that as a file, root neither. */
static void what_cannot_be_read_may_name_another_directory(void **state) {
  g_autofree char *root = g_dir_make_tmp("certificates-XXXXXX", NULL);
  MigSight without, with;

  put(root, "etc/libvirt/qemu.conf/in-the-way", "");
  without = mig_certificates_look(root);
  put(root, "etc/pki/qemu/ca-cert.pem", "");
  with = mig_certificates_look(root);
  nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  assert_int_equal(without, MIG_SIGHT_UNSEEN);
  assert_int_equal(with, MIG_SIGHT_PRESENT);
}

int main(void) {
  Tests tests = {0};

  TESTS_ADD_ROWS(&tests, is_seen, rows);
  tests_add(&tests, "what cannot be read may name another directory",
            what_cannot_be_read_may_name_another_directory, NULL);
  return tests_run(&tests, "certificates");
}
