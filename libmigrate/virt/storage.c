/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which disks only this host sees.
 *
 * A disk that is taken for local is copied where the policy says so; one that is shared in truth would be written
 * into itself then. A disk that is taken for shared is left, and libvirt, which looks as well, refuses to move what it
 * knows to be local. So doubt is the safe side: what cannot be told is neither. */
#include "libmigrate/virt/xml.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

#define MOUNT_TABLE "/proc/self/mountinfo"

/* File systems that two hosts may have mounted at once: libvirt's list (virFileIsSharedFS), by number and by the name
 * that the kernel's table of mounts has. */
static const struct {
  uint32_t magic;
  const char *name;
} shared[] = {
    {0x6969, "nfs"},        {0x6969, "nfs4"},       {0x01161970, "gfs2"},  {0x7461636f, "ocfs2"},
    {0x5346414f, "afs"},    {0xFF534D42, "cifs"},   {0xFE534D42, "smb3"},  {0x00C36400, "ceph"},
    {0x47504653, "gpfs"},   {0x7C7C6673, "prl_fs"}, {0xaad7aaea, "panfs"}, {0x0BD00BD0, "lustre"},
    {0x19830326, "beegfs"},
};

/* GlusterFS and others, shared or not. */
#define FUSE_MAGIC 0x65735546

static MigStorage storage_of_magic(uint32_t magic) {
  if (magic == FUSE_MAGIC)
    return MIG_STORAGE_UNKNOWN;
  for (size_t i = 0; i < G_N_ELEMENTS(shared); i++)
    if (magic == shared[i].magic)
      return MIG_STORAGE_SHARED;
  return MIG_STORAGE_LOCAL;
}

static MigStorage storage_of_name(const char *name) {
  if (g_str_has_prefix(name, "fuse"))
    return strcmp(name, "fuse.glusterfs") == 0 || strcmp(name, "fuse.quobyte") == 0 ? MIG_STORAGE_SHARED
                                                                                    : MIG_STORAGE_UNKNOWN;
  for (size_t i = 0; i < G_N_ELEMENTS(shared); i++)
    if (strcmp(name, shared[i].name) == 0)
      return MIG_STORAGE_SHARED;
  return MIG_STORAGE_LOCAL;
}

/* Is the path the mount point, or below it? */
static bool is_below(const char *path, const char *mount) {
  size_t length = strlen(mount);

  return g_str_has_prefix(path, mount) &&
         (strcmp(mount, "/") == 0 || path[length] == '/' || path[length] == '\0');
}

/* By the table of mounts, which tells of what this process has no permission to reach. The last of the longest holds:
 * later mounts cover earlier ones. A symbolic link on the way is not seen, hence not asked first. */
static MigStorage look_at_mounts(const char *path) {
  g_autofree char *table = NULL;
  g_auto(GStrv) lines = NULL;
  MigStorage found = MIG_STORAGE_UNKNOWN;
  size_t longest = 0;

  if (!g_file_get_contents(MOUNT_TABLE, &table, NULL, NULL))
    return MIG_STORAGE_UNKNOWN;
  lines = g_strsplit(table, "\n", -1);
  for (char **line = lines; *line; line++) {
    g_auto(GStrv) fields = g_strsplit(*line, " ", -1);
    g_autofree char *mount = g_strv_length(fields) > 6 ? g_strcompress(fields[4]) : NULL;

    if (!mount || !is_below(path, mount) || strlen(mount) < longest)
      continue;
    for (char **field = fields + 6; *field; field++) {
      if (strcmp(*field, "-") != 0 || !field[1])
        continue;
      found = storage_of_name(field[1]);
      longest = strlen(mount);
      break;
    }
  }
  return found;
}

MigStorage mig_storage_look(const char *path) {
  struct statfs fs;

  if (!path || path[0] != '/')
    return MIG_STORAGE_UNKNOWN;
  if (statfs(path, &fs) == 0) {
    MigStorage storage = storage_of_magic((uint32_t)fs.f_type);

    /* Which FUSE it is, the table of mounts knows. */
    return storage == MIG_STORAGE_UNKNOWN ? look_at_mounts(path) : storage;
  }
  return look_at_mounts(path);
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
