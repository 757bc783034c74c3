/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The interface file and the tables of the core say the same, in the same order. */
#include "libmigrate/core/policy.h"
#include "libmigrate/core/types.h"

#include "tests/unit/core/rows.h"

#include <ctype.h>

static char *interface_text; /* without comments */

static void load(void) {
  const char *path = getenv("HANDOFFD_INTERFACE");
  FILE *file = path ? fopen(path, "r") : NULL;
  size_t used = 0;
  bool comment = false;
  if (!file) {
    fprintf(stderr, "HANDOFFD_INTERFACE must name the interface file\n");
    exit(1);
  }
  interface_text = calloc(1, 1 << 20);
  for (int c; interface_text && (c = getc(file)) != EOF && used < (1 << 20) - 1;) {
    comment = c == '#' || (comment && c != '\n');
    if (!comment)
      interface_text[used++] = (char)c;
  }
  fclose(file);
}

/* The words between the parentheses of "type NAME (…)", one space between. A field's type is left out, but for
 * its first word if `with_types`. */
static void words_of_type(const char *type, char *ret_words, size_t size) {
  char opening[64];
  snprintf(opening, sizeof(opening), "\ntype %s (", type);
  const char *p = strstr(interface_text, opening);
  if (!p)
    fail_msg("no type %s in the interface file", type);
  size_t used = 0;
  bool in_type = false;
  for (p += strlen(opening); *p && *p != ')' && used + 2 < size; p++) {
    if (*p == ':')
      in_type = true;
    if (*p == ',')
      in_type = false;
    if (*p == ',' && used > 0)
      ret_words[used++] = ' ';
    else if (!in_type && !isspace((unsigned char)*p))
      ret_words[used++] = *p;
  }
  ret_words[used] = '\0';
}

static const struct Enum {
  const char *name;
  const char *type;
  int count;
  int which; /* 0 to 3: phase, stage, direction, cause; else a policy key's names */
  MigPolicyKey key;
} enums[] = {
    {"the phases are the interface's", "Phase", MIG_PHASE_COUNT, 0, 0},
    {"the stages are the interface's", "Stage", MIG_STAGE_COUNT, 1, 0},
    {"the directions are the interface's", "Direction", MIG_DIRECTION_COUNT, 2, 0},
    {"the causes are the interface's", "Cause", MIG_CAUSE_COUNT, 3, 0},
    {"the priorities are the interface's", "Priority", MIG_PRIORITY_COUNT, 4, MIG_POLICY_PRIORITY},
    {"the compressions are the interface's", "Compression", MIG_COMPRESSION_COUNT, 4, MIG_POLICY_COMPRESSION},
    {"the kinds of TLS are the interface's", "Tls", MIG_TLS_COUNT, 4, MIG_POLICY_TLS},
    {"the kinds of disk copies are the interface's", "CopyDisks", MIG_COPY_DISKS_COUNT, 4,
     MIG_POLICY_COPY_DISKS},
};

static const char *enum_name(const struct Enum *row, int value) {
  switch (row->which) {
  case 0:
    return mig_phase_name((MigPhase)value);
  case 1:
    return mig_stage_name((MigStage)value);
  case 2:
    return mig_direction_name((MigDirection)value);
  case 3:
    return mig_cause_name((MigCause)value);
  default:
    return mig_policy_key_info(row->key)->enum_names[value];
  }
}

static void enum_is_the_interfaces(void **state) {
  const struct Enum *row = *state;
  char expected[1024] = "", words[1024];
  for (int i = 0; i < row->count; i++) {
    strcat(expected, i ? " " : "");
    strcat(expected, enum_name(row, i));
  }
  words_of_type(row->type, words, sizeof(words));
  assert_string_equal(words, expected);
}

static void the_policy_is_the_interfaces(void **state) {
  char expected[1024] = "", words[1024];
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    strcat(expected, key ? " " : "");
    strcat(expected, mig_policy_key_info((MigPolicyKey)key)->name);
  }
  words_of_type("Policy", words, sizeof(words));
  assert_string_equal(words, expected);
}

static void the_types_of_policy_fields_are_the_interfaces(void **state) {
  for (int key = 0; key < MIG_POLICY_KEY_COUNT; key++) {
    const MigPolicyKeyInfo *info = mig_policy_key_info((MigPolicyKey)key);
    char field[96];
    snprintf(field, sizeof(field), " %s: ?", info->name);
    const char *p = strstr(interface_text, field);
    assert_non_null(p);
    p += strlen(field);
    switch (info->type) {
    case MIG_POLICY_TYPE_INT:
      assert_true(strncmp(p, "int", 3) == 0);
      break;
    case MIG_POLICY_TYPE_BOOL:
      assert_true(strncmp(p, "bool", 4) == 0);
      break;
    case MIG_POLICY_TYPE_ENUM:
      assert_true(isupper((unsigned char)*p));
      break;
    }
  }
}

int main(void) {
  Tests tests = {0};
  load();
  TESTS_ADD_ROWS(&tests, enum_is_the_interfaces, enums);
  tests_add(&tests, "the policy's keys are the interface's", the_policy_is_the_interfaces, NULL);
  tests_add(&tests, "the types of its fields are the interface's",
            the_types_of_policy_fields_are_the_interfaces, NULL);
  int failed = tests_run(&tests, "interface");
  free(interface_text);
  return failed;
}
