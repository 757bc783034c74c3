/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which disks only this host can see.
 *
 * Theory of Operation. A disk that is judged local is copied if the policy says so; if it were in fact shared, it would be
 * written into itself. A disk that is judged shared is left alone, and libvirt, which looks too, refuses to migrate what it
 * knows to be local. So in doubt a disk is neither, and is not copied.
 *
 * This process need not see what libvirtd sees. Its unit hides directories (ProtectHome=, PrivateTmp=, InaccessiblePaths=),
 * either of the two may run in a container, and the mount table shows only what is mounted on top. A path may also lead through
 * symbolic links that this process may not read. Hence:
 *
 *  - A file is local only if this process sees it, with all links resolved, on a file system that no other host can mount,
 *    from a fixed list. libvirt says that the guest has the file open, so a process that does not find it looks at another
 *    file system.
 *  - Nothing below a mount with which systemd hides a directory is judged, even if something is found there.
 *  - A path may be judged shared from the mount table alone: that is the safe side.
 *
 * This cannot detect a different file under the very same path, in a container with images of its own. */
#include "libmigrate/virt/xml.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define MOUNT_TABLE "/proc/self/mountinfo"

/* File systems that two hosts can mount at once: libvirt's list (virFileIsSharedFS), by magic number and by the name in the
 * kernel's mount table. */
static const struct {
  uint32_t magic;
  const char *name;
} shared[] = {
    {0x6969, "nfs"},        {0x6969, "nfs4"},       {0x01161970, "gfs2"},  {0x7461636f, "ocfs2"},
    {0x5346414f, "afs"},    {0xFF534D42, "cifs"},   {0xFE534D42, "smb3"},  {0x00C36400, "ceph"},
    {0x47504653, "gpfs"},   {0x7C7C6673, "prl_fs"}, {0xaad7aaea, "panfs"}, {0x0BD00BD0, "lustre"},
    {0x19830326, "beegfs"},
};

/* File systems that belong to one host. Those in neither list, such as FUSE or 9p, may be anything. */
static const uint32_t local[] = {
    0xEF53,     /* ext2, ext3, ext4 */
    0x58465342, /* xfs */
    0x9123683E, /* btrfs */
    0x2FC12FC1, /* zfs */
    0xCA451A4E, /* bcachefs */
    0xF2F52010, /* f2fs */
    0x3153464A, /* jfs */
    0x52654973, /* reiserfs */
    0x3434,     /* nilfs2 */
    0x4D44,     /* vfat */
    0x2011BAB0, /* exfat */
    0x7366746E, /* ntfs3 */
    0x01021994, /* tmpfs */
    0x858458F6, /* ramfs */
    0x794C7630, /* overlay */
    0x73717368, /* squashfs */
    0x9660,     /* iso9660 */
};

static MigStorage storage_of_magic(uint32_t magic) {
  for (size_t i = 0; i < G_N_ELEMENTS(shared); i++)
    if (magic == shared[i].magic)
      return MIG_STORAGE_SHARED;
  for (size_t i = 0; i < G_N_ELEMENTS(local); i++)
    if (magic == local[i])
      return MIG_STORAGE_LOCAL;
  return MIG_STORAGE_UNKNOWN;
}

static bool is_shared_name(const char *name) {
  if (strcmp(name, "fuse.glusterfs") == 0 || strcmp(name, "fuse.quobyte") == 0)
    return true;
  for (size_t i = 0; i < G_N_ELEMENTS(shared); i++)
    if (strcmp(name, shared[i].name) == 0)
      return true;
  return false;
}

/* Is the path the mount point itself, or below it? */
static bool is_below(const char *path, const char *mount) {
  size_t length = strlen(mount);

  return g_str_has_prefix(path, mount) &&
         (strcmp(mount, "/") == 0 || path[length] == '/' || path[length] == '\0');
}

/* What the mount table says about a path. */
typedef struct Mounts {
  bool masked; /* systemd mounted something over it to hide it */
  bool
      covered; /* a tmpfs lies where systemd would mount one to hide a directory; it may also be the host's own */
  bool shared; /* by the name of its file system */
} Mounts;

/* `root` is the mounted part of a file system: /systemd/inaccessible/dir of /run or, in a container, /host/inaccessible/dir. */
static bool is_mask(const char *root) {
  return strstr(root, "/inaccessible/") || strstr(root, "/systemd-private-");
}

static bool is_cover(const char *mount, const char *type) {
  static const char *const hidden[] = {"/home", "/root", "/run/user", "/tmp", "/var/tmp"};

  for (size_t i = 0; i < G_N_ELEMENTS(hidden); i++)
    if (strcmp(mount, hidden[i]) == 0)
      return strcmp(type, "tmpfs") == 0;
  return false;
}

/* The path is on the mount with the longest matching mount point, and on the last of these, since later mounts cover earlier
 * ones. But a mask hides everything below it. */
static void look_at_mounts(const char *table, const char *path, Mounts *ret_mounts) {
  g_auto(GStrv) lines = g_strsplit(table, "\n", -1);
  size_t longest = 0;

  *ret_mounts = (Mounts){0};
  for (char **line = lines; *line; line++) {
    g_auto(GStrv) fields = g_strsplit(*line, " ", -1);
    g_autofree char *root = NULL, *mount = NULL;
    guint dash = 6, n = g_strv_length(fields);

    while (dash < n && strcmp(fields[dash], "-") != 0)
      dash++;
    if (dash + 1 >= n)
      continue;
    root = g_strcompress(fields[3]);
    mount = g_strcompress(fields[4]);
    if (!is_below(path, mount))
      continue;
    ret_mounts->masked = ret_mounts->masked || is_mask(root);
    ret_mounts->covered = ret_mounts->covered || is_cover(mount, fields[dash + 1]);
    if (strlen(mount) < longest)
      continue;
    longest = strlen(mount);
    ret_mounts->shared = is_shared_name(fields[dash + 1]);
  }
}

MigStorage mig_storage_judge(const char *table, const char *path, const uint32_t *magic) {
  MigStorage seen = magic ? storage_of_magic(*magic) : MIG_STORAGE_UNKNOWN;
  Mounts mounts;

  look_at_mounts(table, path, &mounts);
  if (mounts.masked)
    return MIG_STORAGE_UNKNOWN;
  return mounts.shared ? MIG_STORAGE_SHARED : seen;
}

/* NULL: not readable. */
static char *read_mounts(void) {
  char *table = NULL;

  return g_file_get_contents(MOUNT_TABLE, &table, NULL, NULL) ? table : NULL;
}

MigStorage mig_storage_look(const char *path) {
  g_autofree char *table = NULL;
  char *end;
  MigStorage storage;
  struct statfs fs;
  uint32_t magic;

  if (!path || path[0] != '/')
    return MIG_STORAGE_UNKNOWN;
  table = read_mounts();
  if (!table)
    return MIG_STORAGE_UNKNOWN;
  end = realpath(path, NULL);
  if (!end || statfs(end, &fs) < 0) {
    free(end);
    return mig_storage_judge(table, path, NULL);
  }
  magic = (uint32_t)fs.f_type;
  storage = mig_storage_judge(table, end, &magic);
  free(end);
  return storage;
}

bool mig_storage_hides(const char *table, const char *path) {
  Mounts mounts;

  look_at_mounts(table, path, &mounts);
  return mounts.masked || mounts.covered;
}

bool mig_storage_may_be_hidden(const char *path) {
  g_autofree char *table = read_mounts();

  return !table || mig_storage_hides(table, path);
}

MigStorage mig_pool_xml_storage(const char *text) {
  g_auto(MigXml) xml = {0};
  g_autofree char *type =
      mig_xml_parse(text, "pool", &xml) ? mig_xml_string(&xml, NULL, "/pool/@type") : NULL;

  /* A volume group may belong to a cluster, too. It counts as local, like any block device that a domain names by path. */
  return g_strcmp0(type, "logical") == 0 || g_strcmp0(type, "disk") == 0 ? MIG_STORAGE_LOCAL
                                                                         : MIG_STORAGE_UNKNOWN;
}

void mig_storage_classify(MigDomainFacts *facts, MigStorageFunc look, gpointer user_data) {
  facts->local_disks = 0;
  for (size_t i = 0; i < facts->n_disks; i++) {
    MigDisk *disk = &facts->disks[i];

    if (disk->source && disk->source[0] == '/' && (disk->type == MIG_DISK_FILE || disk->type == MIG_DISK_DIR))
      disk->storage = look(disk->source, user_data);
    facts->local_disks += mig_disk_is_local(disk);
  }
}
