/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which keys exclude each other: each rule tripped, and just not. */
#include "libmigrate/core/policy.h"

#include "tests/unit/core/rows.h"

/* A policy as words: "allow_post_copy=yes parallel_connections=4". */
static const struct Case {
  const char *name;
  const char *policy;
  MigPolicyFacts facts;
  const char *codes; /* in the order of the rules, with a space between */
} cases[] = {
    {"the defaults exclude nothing", "", {0}, ""},
    {"post-copy over parallel connections on QEMU 10.0",
     "allow_post_copy=yes parallel_connections=2",
     {.qemu_version = 10000000},
     "POST_COPY_PARALLEL"},
    {"post-copy over parallel connections on QEMU 10.1",
     "allow_post_copy=yes parallel_connections=2",
     {.qemu_version = 10001000},
     ""},
    {"post-copy over parallel connections on a QEMU that is not known",
     "allow_post_copy=yes parallel_connections=2",
     {0},
     "POST_COPY_PARALLEL"},
    {"post-copy with no parallel connections",
     "allow_post_copy=yes parallel_connections=0",
     {.qemu_version = 7002000},
     ""},
    {"post-copy in a tunnel", "allow_post_copy=yes tunnelled=yes", {0}, "POST_COPY_TUNNELLED"},
    {"a tunnel without post-copy", "allow_post_copy=no tunnelled=yes", {0}, ""},
    {"post-copy with copied disks",
     "allow_post_copy=yes copy_disks=all",
     {.local_disks = true},
     "POST_COPY_COPY_DISKS"},
    {"post-copy with incrementally copied disks",
     "allow_post_copy=yes copy_disks=incremental",
     {.local_disks = true},
     "POST_COPY_COPY_DISKS"},
    {"disks may be copied, but there are none",
     "allow_post_copy=yes copy_disks=all",
     {.local_disks = false},
     ""},
    {"post-copy with local disks that nobody copies", "allow_post_copy=yes", {.local_disks = true}, ""},
    {"post-copy of a guest with an assigned device",
     "allow_post_copy=yes",
     {.passthrough = true},
     "POST_COPY_PASSTHROUGH"},
    {"pre-copy of a guest with an assigned device", "max_downtime_ms=500", {.passthrough = true}, ""},
    {"a pause of a guest with an assigned device is had by the downtime limit",
     "max_pause_ms=2000",
     {.passthrough = true},
     ""},
    {"parallel connections in a tunnel", "parallel_connections=4 tunnelled=yes", {0}, "PARALLEL_TUNNELLED"},
    {"TLS in a tunnel", "tls=yes tunnelled=yes", {0}, "TLS_TUNNELLED"},
    {"required TLS in a tunnel", "tls=require tunnelled=yes", {0}, "TLS_TUNNELLED"},
    {"a tunnel without TLS", "tls=no tunnelled=yes", {0}, ""},
    {"copied disks in a tunnel",
     "copy_disks=all tunnelled=yes",
     {.local_disks = true},
     "COPY_DISKS_TUNNELLED"},
    {"a tunnel with no disks to copy", "copy_disks=all tunnelled=yes", {0}, ""},
    {"zerocopy on one plain stream", "zerocopy=yes", {0}, "ZEROCOPY_NEEDS_PARALLEL"},
    {"zerocopy over parallel connections",
     "zerocopy=yes parallel_connections=1",
     {.qemu_version = 7002000},
     ""},
    {"zerocopy with TLS", "zerocopy=yes parallel_connections=2 tls=yes", {0}, "ZEROCOPY_TLS"},
    {"zerocopy with compression",
     "zerocopy=yes parallel_connections=2 compression=zstd",
     {0},
     "ZEROCOPY_COMPRESSION"},
    {"zerocopy on QEMU 7.0",
     "zerocopy=yes parallel_connections=2",
     {.qemu_version = 7000000},
     "ZEROCOPY_QEMU"},
    {"zerocopy on a QEMU that is not known", "zerocopy=yes parallel_connections=2", {0}, ""},
    {"zerocopy in a tunnel, with all that follows",
     "zerocopy=yes tunnelled=yes",
     {0},
     "ZEROCOPY_NEEDS_PARALLEL ZEROCOPY_TUNNELLED"},
    {"xbzrle over parallel connections", "compression=xbzrle parallel_connections=2", {0}, "XBZRLE_PARALLEL"},
    {"xbzrle on one plain stream", "compression=xbzrle", {.libvirt_version = 9000000}, ""},
    {"xbzrle with post-copy ends at the switch", "compression=xbzrle allow_post_copy=yes", {0}, ""},
    {"zlib on one plain stream", "compression=zlib", {0}, "COMPRESSION_NEEDS_PARALLEL"},
    {"zstd on one plain stream", "compression=zstd", {0}, "COMPRESSION_NEEDS_PARALLEL"},
    {"zstd over parallel connections",
     "compression=zstd parallel_connections=2",
     {.libvirt_version = 9001000},
     ""},
    {"zstd on libvirt 9.0",
     "compression=zstd parallel_connections=2",
     {.libvirt_version = 9000000},
     "COMPRESSION_LIBVIRT"},
    {"zstd on a libvirt that is not known", "compression=zstd parallel_connections=2", {0}, ""},
    {"auto-converge beside post-copy leaves the choice to the monitor",
     "allow_auto_converge=yes allow_post_copy=yes",
     {.qemu_version = 7002000},
     ""},
    {"a bandwidth for a post-copy that is not permitted does nothing",
     "post_copy_bandwidth_bytes_per_s=1M",
     {0},
     ""},
    {"TLS over parallel connections", "tls=require parallel_connections=4", {0}, ""},
    {"TLS with post-copy", "tls=require allow_post_copy=yes", {.qemu_version = 7002000}, ""},
    {"a bandwidth limit goes with everything", "bandwidth_bytes_per_s=1M parallel_connections=2", {0}, ""},
    {"several at once are all named",
     "allow_post_copy=yes tunnelled=yes tls=yes copy_disks=all",
     {.local_disks = true, .passthrough = true},
     "POST_COPY_TUNNELLED POST_COPY_COPY_DISKS POST_COPY_PASSTHROUGH TLS_TUNNELLED COPY_DISKS_TUNNELLED"},
};

static size_t conflicts_of(const struct Case *row, const MigConflict **conflicts, size_t max) {
  MigPolicy policy;
  char words[256], message[128];
  mig_policy_init(&policy);
  snprintf(words, sizeof(words), "%s", row->policy);
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    *equals = '\0';
    assert_int_equal(mig_policy_set_text(&policy, word, equals + 1, message, sizeof(message)), MIG_POLICY_OK);
  }
  return mig_policy_conflicts(&policy, &row->facts, conflicts, max);
}

static void conflicts_are(void **state) {
  const struct Case *row = *state;
  const MigConflict *conflicts[32];
  char codes[256] = "";
  size_t count = conflicts_of(row, conflicts, LENGTH(conflicts));
  for (size_t i = 0; i < count; i++) {
    strcat(codes, i ? " " : "");
    strcat(codes, conflicts[i]->code);
  }
  assert_string_equal(codes, row->codes);
}

static void every_rule_is_tripped_alone_by_a_row(void **state) {
  const MigConflict *rules[64];
  size_t count = mig_policy_conflict_rules(rules, LENGTH(rules));
  assert_true(count <= LENGTH(rules));
  for (size_t r = 0; r < count; r++) {
    size_t tripped = 0;
    for (size_t c = 0; c < LENGTH(cases); c++)
      tripped += strstr(cases[c].codes, rules[r]->code) != NULL;
    if (tripped == 0)
      fail_msg("no row trips %s", rules[r]->code);
  }
}

static void every_rule_names_its_keys_and_a_way_out(void **state) {
  const MigConflict *rules[64];
  size_t count = mig_policy_conflict_rules(rules, LENGTH(rules));
  for (size_t r = 0; r < count; r++) {
    const MigPolicyKeyInfo *first = mig_policy_key_info(rules[r]->keys[0]);
    assert_non_null(first);
    assert_non_null(strstr(rules[r]->message, ": set "));
    for (size_t other = 0; other < r; other++)
      assert_string_not_equal(rules[r]->code, rules[other]->code);
  }
}

static void all_are_counted_where_few_have_room(void **state) {
  const MigConflict *conflicts[2] = {0};
  assert_int_equal(conflicts_of(&cases[LENGTH(cases) - 1], conflicts, 1), 5);
  assert_non_null(conflicts[0]);
  assert_null(conflicts[1]);
  assert_int_equal(conflicts_of(&cases[LENGTH(cases) - 1], NULL, 0), 5);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, conflicts_are, cases);
  tests_add(&tests, "every rule is tripped by a row", every_rule_is_tripped_alone_by_a_row, NULL);
  tests_add(&tests, "every rule names its keys and a way out", every_rule_names_its_keys_and_a_way_out, NULL);
  tests_add(&tests, "all are counted where few have room", all_are_counted_where_few_have_room, NULL);
  return tests_run(&tests, "conflicts");
}
