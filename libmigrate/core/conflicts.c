/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which policy keys exclude each other, and which need another: one row each. */
#include "libmigrate/core/policy.h"

#include "libmigrate/core/table.h"

/* What a rule looks at: bits of the effective policy, the hosts and the domain. A key at its harmless value (no
 * post-copy, 0 streams) has no bit, and so cannot conflict. */
typedef enum Trait {
  POST_COPY = 1u << 0,
  PARALLEL = 1u << 1,
  TUNNELLED = 1u << 2,
  COPIED_DISKS = 1u << 3, /* requested, and there are some */
  PASSTHROUGH = 1u << 4,
  ZEROCOPY = 1u << 5,
  TLS = 1u << 6, /* both yes and require: whether both ends support it is known too late */
  XBZRLE = 1u << 7,
  MULTIFD_COMPRESSION = 1u << 8, /* zlib, zstd */
  ANY_COMPRESSION = 1u << 9,
  QEMU_OLDER_THAN_10_1 = 1u << 10, /* or unknown: at worst the guest is lost */
  QEMU_OLDER_THAN_7_1 = 1u << 11,  /* and known: otherwise QEMU itself refuses before any data is sent */
  LIBVIRT_OLDER_THAN_9_1 = 1u << 12,
} Trait;

typedef struct Rule {
  unsigned all;  /* a conflict if all of these hold … */
  unsigned none; /* … and none of these */
  MigConflict conflict;
} Rule;

#define NO_KEY MIG_POLICY_KEY_COUNT

/* Sources: libvirt 9.0 qemuMigrationSrcBeginPhase() and qemuMigrationParamsSetCompression(), QEMU 7.2
 * migrate_caps_check() and migrate_params_check(). They refuse as well, but late, one at a time, and not in all
 * cases. What is *not* here is left out on purpose:
 *  - auto-converge with post-copy. QEMU and libvirt accept both. Nova then drops auto-converge, because it would slow
 *    down a guest that post-copy could rescue; here the monitor chooses among the permitted ways, so it makes sense
 *    to permit both.
 *  - post_copy_bandwidth without post-copy, max_throttle without auto-converge: no effect.
 *  - a pause with passthrough: the downtime limit does it, without suspending the guest.
 *  - xbzrle with post-copy: QEMU stops compressing at the switchover. TLS with parallel or with post-copy: both work.
 *  - undefining the source without defining the target: the domain becomes transient, for those who keep the
 *    definition elsewhere. */
static const Rule rules[] = {
    {POST_COPY | PARALLEL | QEMU_OLDER_THAN_10_1,
     0,
     {"POST_COPY_PARALLEL",
      {MIG_POLICY_ALLOW_POST_COPY, MIG_POLICY_PARALLEL_CONNECTIONS},
      "with QEMU before 10.1 on either host, post-copy over parallel connections can leave the guest shut "
      "off: set parallel_connections=0 or allow_post_copy=no"}},
    {POST_COPY | TUNNELLED,
     0,
     {"POST_COPY_TUNNELLED",
      {MIG_POLICY_ALLOW_POST_COPY, MIG_POLICY_TUNNELLED},
      "post-copy requests pages over a return path, which a tunnelled stream does not have: set tunnelled=no "
      "or allow_post_copy=no"}},
    {POST_COPY | COPIED_DISKS,
     0,
     {"POST_COPY_COPY_DISKS",
      {MIG_POLICY_ALLOW_POST_COPY, MIG_POLICY_COPY_DISKS},
      "if the link is lost in post-copy, the guest is also left with half-copied disks: set copy_disks=none "
      "or allow_post_copy=no"}},
    {POST_COPY | PASSTHROUGH,
     0,
     {"POST_COPY_PASSTHROUGH",
      {MIG_POLICY_ALLOW_POST_COPY, NO_KEY},
      "in post-copy, an assigned host device would access memory that has not arrived yet: set "
      "allow_post_copy=no"}},
    {PARALLEL | TUNNELLED,
     0,
     {"PARALLEL_TUNNELLED",
      {MIG_POLICY_PARALLEL_CONNECTIONS, MIG_POLICY_TUNNELLED},
      "a tunnel carries a single stream: set parallel_connections=0 or tunnelled=no"}},
    {TLS | TUNNELLED,
     0,
     {"TLS_TUNNELLED",
      {MIG_POLICY_TLS, MIG_POLICY_TUNNELLED},
      "libvirtd's tunnel does not use QEMU's TLS: set tls=no and use qemu+tls:// or qemu+ssh:// for the "
      "target, or set tunnelled=no"}},
    {COPIED_DISKS | TUNNELLED,
     0,
     {"COPY_DISKS_TUNNELLED",
      {MIG_POLICY_COPY_DISKS, MIG_POLICY_TUNNELLED},
      "disks are copied over a separate connection (NBD), which libvirt does not tunnel: set tunnelled=no or "
      "copy_disks=none"}},
    {ZEROCOPY,
     PARALLEL,
     {"ZEROCOPY_NEEDS_PARALLEL",
      {MIG_POLICY_ZEROCOPY, MIG_POLICY_PARALLEL_CONNECTIONS},
      "QEMU supports zerocopy over parallel connections only: set parallel_connections to 1 or more, or "
      "zerocopy=no"}},
    {ZEROCOPY | TLS,
     0,
     {"ZEROCOPY_TLS",
      {MIG_POLICY_ZEROCOPY, MIG_POLICY_TLS},
      "encryption has to copy the data: set zerocopy=no or tls=no"}},
    {ZEROCOPY | ANY_COMPRESSION,
     0,
     {"ZEROCOPY_COMPRESSION",
      {MIG_POLICY_ZEROCOPY, MIG_POLICY_COMPRESSION},
      "compression has to copy the data: set zerocopy=no or compression=none"}},
    {ZEROCOPY | TUNNELLED,
     0,
     {"ZEROCOPY_TUNNELLED",
      {MIG_POLICY_ZEROCOPY, MIG_POLICY_TUNNELLED},
      "a tunnel copies all data through libvirtd: set zerocopy=no or tunnelled=no"}},
    {ZEROCOPY | QEMU_OLDER_THAN_7_1,
     0,
     {"ZEROCOPY_QEMU",
      {MIG_POLICY_ZEROCOPY, NO_KEY},
      "zerocopy needs QEMU 7.1 on both hosts: set zerocopy=no"}},
    {XBZRLE | PARALLEL,
     0,
     {"XBZRLE_PARALLEL",
      {MIG_POLICY_COMPRESSION, MIG_POLICY_PARALLEL_CONNECTIONS},
      "xbzrle works with a single plain stream only: set parallel_connections=0, or compression to zlib, "
      "zstd or none"}},
    {MULTIFD_COMPRESSION,
     PARALLEL,
     {"COMPRESSION_NEEDS_PARALLEL",
      {MIG_POLICY_COMPRESSION, MIG_POLICY_PARALLEL_CONNECTIONS},
      "zlib and zstd work over parallel connections only: set parallel_connections to 1 or more, or "
      "compression to xbzrle or none"}},
    {MULTIFD_COMPRESSION | LIBVIRT_OLDER_THAN_9_1,
     0,
     {"COMPRESSION_LIBVIRT",
      {MIG_POLICY_COMPRESSION, NO_KEY},
      "zlib and zstd need libvirt 9.1 on both hosts: set compression to none, or to xbzrle with "
      "parallel_connections=0"}},
};

static unsigned traits_of(const MigPolicy *policy, const MigPolicyFacts *facts) {
  uint64_t compression = mig_policy_get(policy, MIG_POLICY_COMPRESSION);
  const struct {
    bool holds;
    unsigned trait;
  } table[] = {
      {mig_policy_get(policy, MIG_POLICY_ALLOW_POST_COPY) != 0, POST_COPY},
      {mig_policy_get(policy, MIG_POLICY_PARALLEL_CONNECTIONS) > 0, PARALLEL},
      {mig_policy_get(policy, MIG_POLICY_TUNNELLED) != 0, TUNNELLED},
      {mig_policy_get(policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE && facts->local_disks,
       COPIED_DISKS},
      {facts->passthrough, PASSTHROUGH},
      {mig_policy_get(policy, MIG_POLICY_ZEROCOPY) != 0, ZEROCOPY},
      {mig_policy_get(policy, MIG_POLICY_TLS) != MIG_TLS_NO, TLS},
      {compression == MIG_COMPRESSION_XBZRLE, XBZRLE},
      {compression == MIG_COMPRESSION_ZLIB || compression == MIG_COMPRESSION_ZSTD, MULTIFD_COMPRESSION},
      {compression != MIG_COMPRESSION_NONE, ANY_COMPRESSION},
      {facts->qemu_version < 10001000, QEMU_OLDER_THAN_10_1},
      {facts->qemu_version != 0 && facts->qemu_version < 7001000, QEMU_OLDER_THAN_7_1},
      {facts->libvirt_version != 0 && facts->libvirt_version < 9001000, LIBVIRT_OLDER_THAN_9_1},
  };
  unsigned traits = 0;
  for (size_t i = 0; i < TABLE_LENGTH(table); i++)
    if (table[i].holds)
      traits |= table[i].trait;
  return traits;
}

size_t mig_policy_conflicts(const MigPolicy *policy, const MigPolicyFacts *facts,
                            const MigConflict **ret_conflicts, size_t max) {
  static const MigPolicyFacts nothing_known = {0};
  unsigned traits = traits_of(policy, facts ? facts : &nothing_known);
  size_t count = 0;
  for (size_t i = 0; i < TABLE_LENGTH(rules); i++) {
    if ((traits & rules[i].all) != rules[i].all || (traits & rules[i].none) != 0)
      continue;
    if (count < max)
      ret_conflicts[count] = &rules[i].conflict;
    count++;
  }
  return count;
}

size_t mig_policy_conflict_rules(const MigConflict **ret_conflicts, size_t max) {
  for (size_t i = 0; i < TABLE_LENGTH(rules) && i < max; i++)
    ret_conflicts[i] = &rules[i].conflict;
  return TABLE_LENGTH(rules);
}
