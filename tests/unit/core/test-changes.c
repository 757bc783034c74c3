/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Comparing two definitions. What libvirt's own XML comes to is in tests/unit/virt/test-definition.c. */
#include "libmigrate/core/change-rules.h"

#include "tests/unit/core/rows.h"

static void every_remedy_has_a_name_of_its_own(void **state) {
  for (int i = 0; i < MIG_REMEDY_COUNT; i++)
    assert_int_equal(mig_remedy_from_name(mig_remedy_name((MigRemedy)i)), i);
  assert_null(mig_remedy_name(MIG_REMEDY_COUNT));
  assert_int_equal(mig_remedy_from_name("reboot"), MIG_ENUM_UNKNOWN);
}

/* --- patterns --- */

static const struct Fit {
  const char *name;
  const char *patterns, *text;
  bool fits;
} fits[] = {
    {"the empty pattern fits the domain itself", "", "", true},
    {"the empty pattern fits no device", "", "disk vda", false},
    {"a star fits all", "*", "disk vda", true},
    {"a star fits nothing, too", "*", "", true},
    {"a word fits itself", "vcpu", "vcpu", true},
    {"a word fits no longer one", "vcpu", "vcpus", false},
    {"a word fits no shorter one", "vcpus", "vcpu", false},
    {"a star at the end", "source@*", "source@bridge", true},
    {"a star at the end fits nothing, too", "source*", "source", true},
    {"a star in the middle", "cpu/numa/cell*@memory", "cpu/numa/cell[0]@memory", true},
    {"a star in the middle, and another end", "cpu/numa/cell*@memory", "cpu/numa/cell[0]@id", false},
    {"a star that has to try again", "a*bc", "abcbc", true},
    {"the second of several", "rng *|disk *", "disk vda", true},
    {"none of several", "rng *|disk *", "video 0", false},
    {"brackets are themselves", "cpu/feature[*", "cpu/feature[vmx]@policy", true},
    {"an empty one among several fits nothing else", "rng *|", "disk vda", false},
};

static void pattern_fits(void **state) {
  const struct Fit *row = *state;
  assert_int_equal(change_fits(row->patterns, row->text), row->fits);
}

/* --- the table --- */

static void every_row_says_what_it_is_about(void **state) {
  const ChangeRow *row;
  size_t n = 0;
  for (; (row = change_row(n)); n++) {
    bool whole = row->kinds & (CHANGE_ADDED | CHANGE_REMOVED),
         value = row->kinds & (CHANGE_VALUE | CHANGE_GONE);
    assert_true(whole != value);
    assert_non_null(row->items);
    assert_int_equal(row->paths != NULL, value);
    assert_in_range(row->remedy, 0, MIG_REMEDY_COUNT - 1);
    if (row->code)
      assert_true(strspn(row->code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == strlen(row->code));
    /* Beside a migration it is only something that disturbs less. */
    assert_true(!row->by_migration || row->remedy == MIG_REMEDY_HOTPLUG);
    /* Where it is plugged, virsh has a verb for it. */
    if (row->code && row->remedy == MIG_REMEDY_HOTPLUG && row->how)
      assert_non_null(strstr(row->how, "--live"));
  }
  assert_true(n > 40);
}

/* What is known of no row is never passed over. */
static void what_no_row_knows_takes_a_restart(void **state) {
  const ChangeContext context = {NULL};
  static const char *const items[] = {"", "warp 0", "interface x", "disk x"};
  for (size_t i = 0; i < LENGTH(items); i++) {
    const ChangeRow *row = change_find(CHANGE_VALUE, items[i], "new/thing@here", &context);
    assert_non_null(row);
    assert_non_null(row->code);
    assert_int_equal(row->remedy, MIG_REMEDY_RESTART);
    assert_null(change_find(CHANGE_GONE, items[i], "new/thing@here", &context));
  }
  assert_int_equal(change_find(CHANGE_ADDED, "warp 0", NULL, &context)->remedy, MIG_REMEDY_RESTART);
  assert_int_equal(change_find(CHANGE_REMOVED, "warp 0", NULL, &context)->remedy, MIG_REMEDY_RESTART);
}

/* --- comparing --- */

#define DEFINITION(entries_)                                                                                 \
  { .entries = entries_, .n = LENGTH(entries_) }

static void sizes_are_exact(void **state) {
  static const MigDefEntry live_entries[] = {
      {.item = "", .path = "memory", .value = "1073741824", .is_size = true}};
  static const MigDefEntry next_entries[] = {
      {.item = "", .path = "memory", .value = "1073742848", .is_size = true}};
  const MigDefinition live = DEFINITION(live_entries), next = DEFINITION(next_entries);
  MigChange change;
  assert_int_equal(mig_changes(&live, &next, &change, 1), 1);
  assert_string_equal(change.live, "memory='1 GiB'");
  assert_string_equal(change.next, "memory='1048577 KiB'");
}

static void long_values_are_cut_and_many_are_counted(void **state) {
  char value[1000];
  MigDefEntry next_entries[9];
  const MigDefEntry live_entries[] = {{.item = "x 0", .path = "@a", .value = "1"}};
  const char *const paths[] = {"@a", "@b", "@c", "@d", "@e", "@f", "@g", "@h", "@i"};
  const MigDefinition live = DEFINITION(live_entries);
  MigDefinition next = DEFINITION(next_entries);
  MigChange change;
  memset(value, 'v', sizeof value - 1);
  value[sizeof value - 1] = '\0';
  for (size_t i = 0; i < LENGTH(next_entries); i++)
    next_entries[i] = (MigDefEntry){.item = "x 0", .path = paths[i], .value = i > 3 ? value : "2"};
  assert_int_equal(mig_changes(&live, &next, &change, 1), 1);
  assert_string_equal(change.next, "a='2', b='2', c='2', d='2', and 5 more");
  for (size_t i = 0; i < LENGTH(next_entries); i++)
    next_entries[i].value = value;
  assert_int_equal(mig_changes(&live, &next, &change, 1), 1);
  assert_true(strlen(change.next) < sizeof change.next);
  assert_true(strlen(change.message) < sizeof change.message);
}

static void secrets_are_told_nobody(void **state) {
  static const MigDefEntry live_entries[] = {
      {.item = "x 0", .path = "@passwd", .value = "one", .is_secret = true}};
  static const MigDefEntry next_entries[] = {
      {.item = "x 0", .path = "@passwd", .value = "two", .is_secret = true}};
  const MigDefinition live = DEFINITION(live_entries), next = DEFINITION(next_entries);
  MigChange change;
  assert_int_equal(mig_changes(&live, &next, &change, 1), 1);
  assert_string_equal(change.live, "passwd='(not shown)'");
  assert_null(strstr(change.message, "one"));
  assert_null(strstr(change.message, "two"));
}

static void nothing_against_nothing_is_no_change(void **state) {
  const MigDefinition none = {0};
  assert_int_equal(mig_changes(&none, &none, NULL, 0), 0);
}

int main(void) {
  Tests tests = {0};
  tests_add(&tests, "every remedy has a name of its own", every_remedy_has_a_name_of_its_own, NULL);
  TESTS_ADD_ROWS(&tests, pattern_fits, fits);
  tests_add(&tests, "every row says what it is about", every_row_says_what_it_is_about, NULL);
  tests_add(&tests, "what no row knows takes a restart", what_no_row_knows_takes_a_restart, NULL);
  tests_add(&tests, "sizes are exact", sizes_are_exact, NULL);
  tests_add(&tests, "long values are cut, and many are counted", long_values_are_cut_and_many_are_counted,
            NULL);
  tests_add(&tests, "secrets are told nobody", secrets_are_told_nobody, NULL);
  tests_add(&tests, "nothing against nothing is no change", nothing_against_nothing_is_no_change, NULL);
  return tests_run(&tests, "changes");
}
