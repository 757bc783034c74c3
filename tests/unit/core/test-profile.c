/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest's profile: what it expects after some measurements, and its text, which may come from anybody. */
#include "libmigrate/core/profile.h"

#include "tests/unit/core/rows.h"

#define MIB    MIG_MIB_BYTES
#define MINUTE (INT64_C(60) * 1000000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* Midnight of some day, UTC. */
#define MIDNIGHT (INT64_C(20000) * DAY)

/* --- what it expects --- */

/* Minutes after midnight, seconds, MiB/s. */
typedef struct Note {
  int minute;
  unsigned seconds;
  uint64_t mib_per_s;
} Note;

static const struct Expectation {
  const char *name;
  Note notes[6];
  int at_minute;
  bool known;
  double mib_1s, mib_3s; /* dirtied in that time */
} expectations[] = {
    {"never measured", {{0}}, 0, false, 0, 0},
    {"measured once", {{10, 1, 20}}, 11, true, 20, 20},
    {"a short and a long one are two points", {{10, 1, 20}, {25, 3, 10}}, 26, true, 20, 30},
    {"a guest does not dirty less in a longer time", {{10, 1, 20}, {25, 3, 2}}, 26, true, 20, 20},
    {"nor more for each second", {{10, 1, 20}, {25, 3, 90}}, 26, true, 20, 60},
    {"the newest counts for half", {{10, 1, 20}, {25, 3, 30}, {40, 1, 60}}, 41, true, 40, 90},
    {"an idle guest is known to be idle", {{10, 1, 0}}, 11, true, 0, 0},
    {"an old one counts where the hour has none", {{10, 1, 20}}, 5 * 60, true, 20, 20},
    {"else the hour does, on the next day",
     {{10, 1, 80}, {25, 3, 40}, {5 * 60, 1, 20}},
     24 * 60 + 15,
     true,
     80,
     80 * 3 * 40 / 50.},
    {"a week is too long", {{10, 1, 20}}, 8 * 24 * 60, false, 0, 0},
    {"a clock that was set back does no harm", {{600, 1, 20}}, 10, true, 20, 20},
};

static void note(MigProfile *profile, int64_t now_usec, unsigned seconds, double bytes_per_s,
                 double cpu_share) {
  MigProbe probe = {.cpu_share = cpu_share, .resident_bytes = 3 * MIB};
  mig_dirty_curve_observe(&probe.curve, seconds, bytes_per_s * seconds);
  mig_profile_note(profile, now_usec, seconds, &probe);
}

static MigProfile profile_of(const Note *notes) {
  MigProfile profile = {0};
  for (int i = 0; notes[i].seconds > 0; i++)
    note(&profile, MIDNIGHT + notes[i].minute * MINUTE, notes[i].seconds, (double)(notes[i].mib_per_s * MIB),
         0);
  return profile;
}

static void expects(void **state) {
  const struct Expectation *row = *state;
  MigProfile profile = profile_of(row->notes);
  MigProbe probe;
  assert_int_equal(mig_profile_expect(&profile, MIDNIGHT + row->at_minute * MINUTE, &probe), row->known);
  assert_float_equal(mig_dirty_curve_lower(&probe.curve, 1) / (double)MIB, (float)row->mib_1s, 0.01);
  assert_float_equal(mig_dirty_curve_lower(&probe.curve, 3) / (double)MIB, (float)row->mib_3s, 0.01);
  assert_int_equal(probe.curve.changes, 0);
}

static void alternates(void **state) {
  MigProfile profile = {0};
  unsigned expected[] = {1, 3, 1, 3};
  for (size_t i = 0; i < LENGTH(expected); i++) {
    assert_int_equal(mig_profile_seconds(&profile), expected[i]);
    note(&profile, MIDNIGHT, expected[i], MIB, 0.5);
  }
  assert_int_equal(profile.probes, 4);
  assert_int_equal(profile.hours[0].probes, 2);
  assert_float_equal(profile.cpu_share, 0.5, 0.001);
}

/* --- its text --- */

static void survives_its_text(void **state) {
  MigProfile profile = {0}, again;
  char text[MIG_PROFILE_TEXT_SIZE], text_again[MIG_PROFILE_TEXT_SIZE];
  /* As long as it gets: each hour measured very often, with the largest rates. */
  for (int64_t i = 0; i < 24 * 100; i++)
    note(&profile, MIDNIGHT + i * HOUR, i / 24 % 2 ? 3 : 1, 1e30, 0.357);
  for (int i = 0; i < MIG_PROFILE_HOURS; i++)
    profile.hours[i].probes = 1000000;
  mig_profile_format(&profile, text);
  assert_true(mig_profile_parse(text, &again));
  mig_profile_format(&again, text_again);
  assert_string_equal(text, text_again);
  assert_memory_equal(&profile.hours, &again.hours, sizeof(profile.hours));
  assert_int_equal(profile.probes, again.probes);
  assert_int_equal(again.resident_bytes, 3 * MIB);
}

static const struct Text {
  const char *name, *text;
  bool ok;
} texts[] = {
    {"the shortest", "1 1700000000 1 2048 0 350 9", true},
    {"with an hour", "1 1700000000 1 2048 0 350 9 13:1:2048:2048", true},
    {"nothing", "", false},
    {"of a newer version", "2 1700000000 1 2048 0 350 9", false},
    {"never measured", "1 1700000000 0 2048 0 350 9", false},
    {"cut off", "1 1700000000 1 2048", false},
    {"cut off in an hour", "1 1700000000 1 2048 0 350 9 13:1:2048", false},
    {"more than a thousand per mille", "1 1700000000 1 2048 0 1001 9", false},
    {"an hour too many", "1 1700000000 1 2048 0 350 9 24:1:2048:2048", false},
    {"a mean above the most", "1 1700000000 1 2048 0 350 9 13:1:2049:2048", false},
    {"an hour that was never measured", "1 1700000000 1 2048 0 350 9 13:0:0:0", false},
    {"negative", "1 -1700000000 1 2048 0 350 9", false},
    {"a number that overflows", "1 99999999999999999999999 1 2048 0 350 9", false},
    {"a rate of no machine", "1 1700000000 1 1099511627777 0 350 9", false},
    {"words", "1 1700000000 1 2048 0 lots 9", false},
    {"something after it", "1 1700000000 1 2048 0 350 9 x", false},
    {"white space around it", " 1 1700000000 1 2048 0 350 9", false},
};

static void parses(void **state) {
  const struct Text *row = *state;
  const MigProfile none = {0};
  MigProfile profile;
  memset(&profile, 1, sizeof(profile));
  assert_int_equal(mig_profile_parse(row->text, &profile), row->ok);
  if (!row->ok)
    assert_memory_equal(&profile, &none, sizeof(profile));
  else
    assert_int_equal(profile.short_bytes_per_s, 2 * MIB);
}

int main(void) {
  Tests tests = {0};
  TESTS_ADD_ROWS(&tests, expects, expectations);
  tests_add(&tests, "short and long measurements alternate", alternates, NULL);
  tests_add(&tests, "the longest text fits, and says the same", survives_its_text, NULL);
  TESTS_ADD_ROWS(&tests, parses, texts);
  return tests_run(&tests, "profile");
}
