/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which disks only this host sees: tables of mounts as units and containers have them, and a mount namespace of our own. */
#include "libmigrate/virt/xml.h"

#include "tests/unit/virt/cmocka-all.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- tables of mounts --- */

#define EXT4  0xEF53
#define TMPFS 0x01021994
#define NFS   0x6969
#define FUSE  0x65735546
#define V9FS  0x01021997

/* Of handoffd.service as it is installed: ProtectHome=yes, PrivateTmp=yes, ProtectSystem=strict. /data is NFS. */
static const char unit[] =
    "210 159 8:1 / / ro,nosuid,relatime shared:30 master:1 - ext4 /dev/sda1 rw\n"
    "235 210 0:48 / /run rw,nosuid,nodev shared:54 master:6 - tmpfs tmpfs rw,mode=755\n"
    "236 210 0:77 / /data rw,relatime shared:55 master:7 - nfs4 filer:/data rw\n"
    "237 210 0:78 / /home/shared rw,relatime shared:56 master:9 - nfs4 filer:/home rw\n"
    "238 210 8:2 / /my\\040images rw,relatime shared:57 master:9 - ext4 /dev/sda2 rw\n"
    "230 210 0:48 /systemd/inaccessible/dir /home ro,nosuid,nodev,noexec shared:70 master:6 - tmpfs tmpfs "
    "rw\n"
    "232 210 0:48 /systemd/inaccessible/dir /root ro,nosuid,nodev,noexec shared:72 master:6 - tmpfs tmpfs "
    "rw\n"
    "243 235 0:48 /systemd/inaccessible/dir /run/user ro,nosuid,nodev,noexec shared:64 master:6 - tmpfs "
    "tmpfs rw\n"
    "247 210 8:1 /tmp/systemd-private-381549f7-handoffd.service-aC8sje/tmp /tmp rw - ext4 /dev/sda1 rw\n"
    "249 210 8:1 /var/tmp/systemd-private-381549f7-handoffd.service-vlDV3h/tmp /var/tmp rw - ext4 /dev/sda1 "
    "rw\n";

/* The same in a container of systemd-nspawn. */
static const char contained[] =
    "210 159 0:41 / / ro,nosuid,relatime shared:30 master:1 - overlay overlay rw,lowerdir=/\n"
    "230 210 0:48 /host/inaccessible/dir /home ro,nosuid,nodev,noexec shared:70 master:6 - tmpfs tmpfs rw\n";

/* ProtectHome=tmpfs, and a file that InaccessiblePaths= has. */
static const char hidden[] =
    "210 159 8:1 / / ro,relatime shared:30 - ext4 /dev/sda1 rw\n"
    "211 210 0:50 / /home ro,nosuid,nodev shared:31 - tmpfs tmpfs ro,mode=755\n"
    "212 210 0:48 /systemd/inaccessible/reg /d/secret.img ro shared:32 - tmpfs tmpfs rw\n";

/* A host that hides nothing; the second mount of /n covers the first. */
static const char plain[] = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                            "22 21 0:30 / /tmp rw,nosuid shared:2 - tmpfs tmpfs rw\n"
                            "23 21 0:31 / /n rw,relatime - nfs filer:/n rw\n"
                            "24 21 8:3 / /n rw,relatime - ext4 /dev/sda3 rw\n"
                            "25 21 0:32 / /g rw,relatime - fuse.glusterfs g:/v rw\n"
                            "26 21 0:33 / /s rw,relatime - fuse.sshfs h:/ rw\n"
                            "27 21 0:34 / /nfs rw,relatime - nfs filer:/nfs rw\n"
                            "a line that is none\n";

#define L MIG_STORAGE_LOCAL
#define S MIG_STORAGE_SHARED
#define U MIG_STORAGE_UNKNOWN

static const struct Row {
  const char *table;
  const char *path;
  uint32_t magic; /* 0: this process does not see the file */
  MigStorage expected;
  bool hides; /* that nothing is seen there says nothing */
} rows[] = {
    {unit, "/var/lib/libvirt/images/a.img", EXT4, L, false},
    {unit, "/var/lib/libvirt/images/a.img", 0, U,
     false}, /* behind a directory that it may not enter, or elsewhere */
    {unit, "/home/db1.img", 0, U, true},
    {unit, "/home/shared/db1.img", 0, U, true},
    {unit, "/homes/db1.img", EXT4, L, false},
    {unit, "/root/a.img", 0, U, true},
    {unit, "/run/user/0/a.img", 0, U, true},
    {unit, "/run/a.img", TMPFS, L, false},
    {unit, "/tmp/a.img", 0, U, true},
    {unit, "/tmp/a.img", EXT4, U, true}, /* another one of that name */
    {unit, "/var/tmp/a.img", EXT4, U, true},
    {unit, "/data/a.img", NFS, S, false},
    {unit, "/data/a.img", 0, S, false},
    {unit, "/my images/a.img", EXT4, L, false},
    {contained, "/home/a.img", 0, U, true},
    {hidden, "/home/a.img", 0, U, true},
    {hidden, "/d/secret.img", TMPFS, U, true},
    {hidden, "/d/open.img", EXT4, L, false},
    {plain, "/tmp/a.img", TMPFS, L, true},
    {plain, "/tmp/a.img", 0, U, true},
    {plain, "/n/a.img", EXT4, L, false},
    {plain, "/n/a.img", 0, U, false},
    {plain, "/g/a.img", FUSE, S, false},
    {plain, "/s/a.img", FUSE, U, false},
    {plain, "/nfs/a.img", 0, S, false},
    {plain, "/nf/a.img", EXT4, L, false},
    {plain, "/v/a.img", V9FS, U, false}, /* of a file system that is on no list */
    {"", "/a.img", 0, U, false},
};

static void a_table_of_mounts_is_read(void **state) {
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    MigStorage storage =
        mig_storage_judge(rows[i].table, rows[i].path, rows[i].magic ? &rows[i].magic : NULL);

    if (storage != rows[i].expected || mig_storage_hides(rows[i].table, rows[i].path) != rows[i].hides)
      fail_msg("%s (row %zu): %d", rows[i].path, i, storage);
  }
}

static void a_device_is_what_its_pool_says(void **state) {
  assert_int_equal(mig_pool_xml_storage("<pool type='logical'><name>vg</name></pool>"), L);
  assert_int_equal(mig_pool_xml_storage("<pool type='disk'/>"), L);
  assert_int_equal(mig_pool_xml_storage("<pool type='iscsi'/>"), U);
  assert_int_equal(mig_pool_xml_storage("<pool type='scsi'/>"), U);
  assert_int_equal(mig_pool_xml_storage("<pool type='mpath'/>"), U);
  assert_int_equal(mig_pool_xml_storage("<domain type='logical'/>"), U);
  assert_int_equal(mig_pool_xml_storage(""), U);
}

/* --- in a mount namespace, as a unit's --- */

static bool write_text(const char *path, const char *text) {
  return g_file_set_contents(path, text, -1, NULL);
}

/* Root there, whoever we are here. */
static bool enter_namespace(void) {
  g_autofree char *map = g_strdup_printf("0 %u 1", getuid());

  if (geteuid() == 0)
    return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
    return false;
  return write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", map);
}

#define SKIPPED 77

/* The status of `look`, which has the directory, hidden as `mask` does it. */
static void in_namespace(bool (*mask)(const char *home), MigStorage expected) {
  g_autofree char *home = g_dir_make_tmp("handoffd-storage.XXXXXX", NULL);
  g_autofree char *image = g_build_filename(home, "a.img", NULL);
  int status = 0;
  pid_t pid;

  assert_true(write_text(image, "a disk"));
  pid = fork();
  if (pid == 0) {
    if (!enter_namespace() || !mask(home))
      _exit(SKIPPED);
    _exit(mig_storage_look(image));
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  g_unlink(image);
  g_rmdir(home);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == SKIPPED && !g_getenv("CI"))
    skip();
  assert_int_equal(WEXITSTATUS(status), expected);
}

static bool hide_nothing(const char *home) {
  return true;
}

/* ProtectHome=tmpfs, TemporaryFileSystem=, PrivateTmp=: something empty lies over it. */
static bool lay_tmpfs(const char *home) {
  return mount("tmpfs", home, "tmpfs", 0, "mode=0755") == 0;
}

/* ProtectHome=yes, InaccessiblePaths=: a directory that nobody may enter. Root may, and finds it empty. */
static bool lay_inaccessible(const char *home) {
  return mount("tmpfs", home, "tmpfs", 0, "mode=0000") == 0;
}

static bool lay_over_file(const char *home) {
  g_autofree char *image = g_build_filename(home, "a.img", NULL);
  g_autofree char *inaccessible = g_build_filename("/tmp", "systemd", "inaccessible", "reg", NULL);
  g_autofree char *directory = g_path_get_dirname(inaccessible);

  return mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 && g_mkdir_with_parents(directory, 0755) == 0 &&
         write_text(inaccessible, "") && g_mkdir_with_parents(home, 0755) == 0 && write_text(image, "") &&
         mount(inaccessible, image, NULL, MS_BIND, NULL) == 0;
}

/* As a link of the owner's, to where another host may look as well: nobody can see that from the path. */
static bool break_link(const char *home) {
  g_autofree char *image = g_build_filename(home, "a.img", NULL);

  return g_unlink(image) == 0 && symlink("/nowhere/a.img", image) == 0;
}

static void what_is_seen_is_local(void **state) {
  in_namespace(hide_nothing, MIG_STORAGE_LOCAL);
}

static void below_a_tmpfs_nothing_is_known(void **state) {
  in_namespace(lay_tmpfs, MIG_STORAGE_UNKNOWN);
}

static void below_what_is_inaccessible_nothing_is_known(void **state) {
  in_namespace(lay_inaccessible, MIG_STORAGE_UNKNOWN);
}

static void of_a_file_that_is_masked_nothing_is_known(void **state) {
  in_namespace(lay_over_file, MIG_STORAGE_UNKNOWN);
}

static void behind_a_link_that_leads_nowhere_nothing_is_known(void **state) {
  in_namespace(break_link, MIG_STORAGE_UNKNOWN);
}

/* For tests/systemd/nspawn, in the namespace of the unit. */
static int tell(const char *path) {
  static const char *const names[] = {
      [MIG_STORAGE_UNKNOWN] = "unknown", [MIG_STORAGE_LOCAL] = "local", [MIG_STORAGE_SHARED] = "shared"};

  puts(names[mig_storage_look(path)]);
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_table_of_mounts_is_read),
      cmocka_unit_test(a_device_is_what_its_pool_says),
      cmocka_unit_test(what_is_seen_is_local),
      cmocka_unit_test(below_a_tmpfs_nothing_is_known),
      cmocka_unit_test(below_what_is_inaccessible_nothing_is_known),
      cmocka_unit_test(of_a_file_that_is_masked_nothing_is_known),
      cmocka_unit_test(behind_a_link_that_leads_nowhere_nothing_is_known),
  };

  if (argc == 3 && strcmp(argv[1], "--look") == 0)
    return tell(argv[2]);
  return cmocka_run_group_tests_name("storage", tests, NULL, NULL);
}
