/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of policy keys: parsing, printing, ranges, merging. */
#include "libmigrate/core/policy.h"

#include "tests/unit/core/rows.h"

static const struct Default {
  const char *name;
  uint64_t value;
} defaults[] = {
    {"max_downtime_ms", 300},
    {"max_pause_ms", 0},
    {"allow_post_copy", 0},
    {"allow_auto_converge", 0},
    {"max_throttle_pct", 80},
    {"completion_timeout_s_per_gib", 150},
    {"disk_timeout_s_per_gib", 800},
    {"progress_timeout_s", 150},
    {"bandwidth_bytes_per_s", 0},
    {"post_copy_bandwidth_bytes_per_s", 0},
    {"parallel_connections", 0},
    {"compression", MIG_COMPRESSION_NONE},
    {"tls", MIG_TLS_NO},
    {"zerocopy", 0},
    {"tunnelled", 0},
    {"copy_disks", MIG_COPY_DISKS_NONE},
    {"persist_target", 1},
    {"undefine_source", 1},
    {"priority", MIG_PRIORITY_DEFAULT},
};
_Static_assert(LENGTH(defaults) == MIG_POLICY_KEY_COUNT, "a default for each key");

static void default_is_the_documented_one(void **state) {
  const struct Default *row = *state;
  MigPolicy policy;
  mig_policy_init(&policy);
  const MigPolicyKeyInfo *info = mig_policy_key_by_name(row->name);
  assert_non_null(info);
  assert_int_equal(mig_policy_get(&policy, info->key), row->value);
  assert_int_equal(policy.set, 0);
}

static void every_row_of_the_table_is_whole(void **state) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    assert_non_null(info);
    assert_int_equal(info->key, key);
    assert_ptr_equal(mig_policy_key_by_name(info->name), info);
    assert_non_null(info->summary);
    assert_true(info->min <= info->default_value && info->default_value <= info->max);
    assert_true(info->max <= INT64_MAX); /* they travel as signed numbers */
    if (info->type == MIG_POLICY_TYPE_ENUM) {
      for (uint64_t i = 0; i <= info->max; i++)
        assert_non_null(info->enum_names[i]);
      assert_null(info->enum_names[info->max + 1]);
    }
  }
  assert_null(mig_policy_key_info(MIG_POLICY_KEY_COUNT));
  assert_null(mig_policy_key_by_name("max_downtime"));
  assert_null(mig_policy_key_by_name(NULL));
}

static void what_is_printed_can_be_read(void **state) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    const uint64_t values[] = {info->min, info->max, info->default_value,
                               info->min + (info->max - info->min) / 2};
    for (size_t i = 0; i < LENGTH(values); i++) {
      MigPolicy policy, again;
      char text[64], message[128];
      mig_policy_init(&policy);
      mig_policy_init(&again);
      assert_int_equal(mig_policy_set(&policy, info->key, values[i], message, sizeof(message)),
                       MIG_POLICY_OK);
      mig_policy_format(&policy, info->key, text, sizeof(text));
      assert_int_equal(mig_policy_set_text(&again, info->name, text, message, sizeof(message)),
                       MIG_POLICY_OK);
      assert_int_equal(mig_policy_get(&again, info->key), values[i]);
      assert_int_equal(again.set, UINT32_C(1) << key);
    }
  }
}

#define MIB (UINT64_C(1) << 20)
static const struct Parse {
  const char *name;
  const char *key, *text;
  MigPolicyError error;
  uint64_t value;
} parses[] = {
    {"a plain number is in the key's unit", "max_downtime_ms", "500", MIG_POLICY_OK, 500},
    {"seconds become milliseconds", "max_downtime_ms", "2s", MIG_POLICY_OK, 2000},
    {"minutes become seconds", "progress_timeout_s", "2min", MIG_POLICY_OK, 120},
    {"an hour becomes seconds", "progress_timeout_s", "1h", MIG_POLICY_OK, 3600},
    {"milliseconds that are whole seconds", "progress_timeout_s", "3000ms", MIG_POLICY_OK, 3},
    {"a fraction of the unit is refused, not rounded", "progress_timeout_s", "1500ms",
     MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"a decimal fraction is refused", "progress_timeout_s", "1.5", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"white space around and within", "progress_timeout_s", "  2 min ", MIG_POLICY_OK, 120},
    {"M is of 1024", "bandwidth_bytes_per_s", "32M", MIG_POLICY_OK, 32 * MIB},
    {"MiB/s reads well", "bandwidth_bytes_per_s", "32 MiB/s", MIG_POLICY_OK, 32 * MIB},
    {"G", "bandwidth_bytes_per_s", "1G", MIG_POLICY_OK, 1024 * MIB},
    {"plain bytes", "bandwidth_bytes_per_s", "1000000", MIG_POLICY_OK, 1000000},
    {"bits are not taken for bytes", "bandwidth_bytes_per_s", "100Mbit", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"a size is not a time", "max_downtime_ms", "3M", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"a time is not a size", "bandwidth_bytes_per_s", "3s", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"a count has no unit", "parallel_connections", "4s", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"a percentage may say so", "max_throttle_pct", "99%", MIG_POLICY_OK, 99},
    {"100 % would stop the guest", "max_throttle_pct", "100", MIG_POLICY_ERROR_OUT_OF_RANGE, 0},
    {"0 ms of downtime cannot be", "max_downtime_ms", "0", MIG_POLICY_ERROR_OUT_OF_RANGE, 0},
    {"QEMU's largest downtime", "max_downtime_ms", "2000s", MIG_POLICY_OK, 2000000},
    {"one more is refused", "max_downtime_ms", "2000001", MIG_POLICY_ERROR_OUT_OF_RANGE, 0},
    {"0 switches a timeout off", "completion_timeout_s_per_gib", "0", MIG_POLICY_OK, 0},
    {"a negative number", "max_pause_ms", "-1", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"more than 64 bits", "max_pause_ms", "99999999999999999999", MIG_POLICY_ERROR_OUT_OF_RANGE, 0},
    {"more than 64 bits by its suffix", "bandwidth_bytes_per_s", "18446744073709551615T",
     MIG_POLICY_ERROR_OUT_OF_RANGE, 0},
    {"hexadecimal is not read as 0", "max_pause_ms", "0x10", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"nothing", "max_pause_ms", "", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"a suffix alone", "max_pause_ms", "ms", MIG_POLICY_ERROR_NOT_A_NUMBER, 0},
    {"yes", "allow_post_copy", "yes", MIG_POLICY_OK, 1},
    {"true in capitals", "allow_post_copy", "TRUE", MIG_POLICY_OK, 1},
    {"on", "allow_post_copy", "on", MIG_POLICY_OK, 1},
    {"off", "persist_target", "off", MIG_POLICY_OK, 0},
    {"0", "persist_target", "0", MIG_POLICY_OK, 0},
    {"maybe is not a boolean", "allow_post_copy", "maybe", MIG_POLICY_ERROR_NOT_A_BOOLEAN, 0},
    {"2 is not a boolean", "allow_post_copy", "2", MIG_POLICY_ERROR_NOT_A_BOOLEAN, 0},
    {"an enum by its name", "compression", "zstd", MIG_POLICY_OK, MIG_COMPRESSION_ZSTD},
    {"tls=require", "tls", "require", MIG_POLICY_OK, MIG_TLS_REQUIRE},
    {"a value of another enum", "tls", "zstd", MIG_POLICY_ERROR_UNKNOWN_VALUE, 0},
    {"the beginning of a value", "copy_disks", "incr", MIG_POLICY_ERROR_UNKNOWN_VALUE, 0},
    {"a key that does not exist", "max_downtime", "300", MIG_POLICY_ERROR_UNKNOWN_KEY, 0},
};

static void parse(void **state) {
  const struct Parse *row = *state;
  MigPolicy policy, before;
  char message[256] = "untouched";
  mig_policy_init(&policy);
  before = policy;
  MigPolicyError error = mig_policy_set_text(&policy, row->key, row->text, message, sizeof(message));
  assert_int_equal(error, row->error);
  if (error == MIG_POLICY_OK) {
    const MigPolicyKeyInfo *info = mig_policy_key_by_name(row->key);
    assert_int_equal(mig_policy_get(&policy, info->key), row->value);
    assert_int_equal(policy.set, UINT32_C(1) << info->key);
    assert_string_equal(message, "untouched");
  } else {
    assert_memory_equal(&policy, &before, sizeof(policy));
    assert_string_not_equal(message, "untouched");
    assert_true(error == MIG_POLICY_ERROR_UNKNOWN_KEY || strncmp(message, row->key, strlen(row->key)) == 0);
  }
}

static void a_refusal_says_what_would_be_accepted(void **state) {
  MigPolicy policy;
  char message[256];
  mig_policy_init(&policy);
  mig_policy_set_text(&policy, "max_downtime_ms", "soon", message, sizeof(message));
  assert_string_equal(message,
                      "max_downtime_ms takes a whole number from 1 to 2000000 ms, or with ms, s, min or h, "
                      "not \"soon\"");
  mig_policy_set_text(&policy, "tls", "perhaps", message, sizeof(message));
  assert_string_equal(message, "tls takes no, yes or require, not \"perhaps\"");
  mig_policy_set(&policy, MIG_POLICY_ALLOW_POST_COPY, 2, message, sizeof(message));
  assert_string_equal(message, "allow_post_copy takes yes or no, not \"2\"");
}

static void what_came_from_outside_is_shown_without_harm(void **state) {
  MigPolicy policy;
  char message[256], tiny[8];
  mig_policy_init(&policy);
  mig_policy_set_text(&policy, "tls", "\x1b[2J\xff\n", message, sizeof(message));
  assert_string_equal(message, "tls takes no, yes or require, not \"?[2J??\"");
  mig_policy_set_text(&policy, "tls", "x", tiny, sizeof(tiny));
  assert_string_equal(tiny, "tls tak");
  mig_policy_set_text(&policy, "tls", "x", NULL, 0);
}

static void what_is_set_above_wins(void **state) {
  MigPolicy node, named, request;
  char message[128];
  mig_policy_init(&node);
  mig_policy_init(&named);
  mig_policy_init(&request);
  mig_policy_set_text(&node, "max_downtime_ms", "100", message, sizeof(message));
  mig_policy_set_text(&node, "tls", "require", message, sizeof(message));
  mig_policy_set_text(&named, "max_downtime_ms", "200", message, sizeof(message));
  /* A default given on purpose is given. */
  mig_policy_set_text(&request, "tls", "no", message, sizeof(message));
  mig_policy_merge(&node, &named);
  mig_policy_merge(&node, &request);
  assert_int_equal(mig_policy_get(&node, MIG_POLICY_MAX_DOWNTIME_MS), 200);
  assert_int_equal(mig_policy_get(&node, MIG_POLICY_TLS), MIG_TLS_NO);
  assert_int_equal(mig_policy_get(&node, MIG_POLICY_PROGRESS_TIMEOUT_S), 150);
  assert_int_equal(node.set, UINT32_C(1) << MIG_POLICY_MAX_DOWNTIME_MS | UINT32_C(1) << MIG_POLICY_TLS);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, default_is_the_documented_one, defaults);
  tests_add(&tests, "every row of the table is whole", every_row_of_the_table_is_whole, NULL);
  tests_add(&tests, "what is printed can be read", what_is_printed_can_be_read, NULL);
  TESTS_ADD_ROWS(&tests, parse, parses);
  tests_add(&tests, "a refusal says what would be accepted", a_refusal_says_what_would_be_accepted, NULL);
  tests_add(&tests, "what came from outside is shown without harm",
            what_came_from_outside_is_shown_without_harm, NULL);
  tests_add(&tests, "what is set above wins", what_is_set_above_wins, NULL);
  return tests_run(&tests, "policy");
}
