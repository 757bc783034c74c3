/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The zoo: each guest makes sense, and the same seed draws the same ones. */
#include "tests/zoo/sim-guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DRAWS = 20000 };

static void check(const ZooGuest *guest) {
  const char *problem = zoo_problem(guest);
  if (problem)
    fail_msg("%s: %s", guest->name, problem);
}

static void named_guests_are_valid(void **unused) {
  size_t n, in_lab = 0;
  const ZooGuest *guests = zoo_list(&n);
  (void)unused;
  for (size_t i = 0; i < n; i++) {
    ZooGuest found;
    check(&guests[i]);
    assert_true(guests[i].what && guests[i].what[0]);
    assert_true(zoo_find(guests[i].name, &found));
    assert_string_equal(found.what, guests[i].what); /* so no other one has its name */
    in_lab += zoo_lab_problem(&guests[i]) == NULL;
  }
  assert_in_range(in_lab, 20, n - 5);
}

static void drawn_guests_are_valid(void **unused) {
  (void)unused;
  for (unsigned range = ZOO_ANY; range <= ZOO_QUICK; range++)
    for (uint64_t i = 0; i < DRAWS; i++) {
      ZooGuest guest = zoo_draw((ZooRange)range, i / 100, i % 100);
      check(&guest);
      if (range != ZOO_ANY && zoo_lab_problem(&guest))
        fail_msg("%s: %s", guest.name, zoo_lab_problem(&guest));
      if (range == ZOO_QUICK)
        assert_in_range(guest.memory_mib, 64, 512);
    }
}

/* What the definition promises occurs in a reasonable number of draws. */
static void draws_reach_the_corners(void **unused) {
  unsigned seen = 0, writers = 0, places = 0, phases = 0, two_heaps = 0, disks = 0, huge = 0;
  uint64_t largest_mib = 0, smallest_mib = UINT64_MAX;
  (void)unused;
  for (uint64_t i = 0; i < 2000; i++) {
    ZooGuest guest = zoo_draw(ZOO_ANY, 7, i);
    writers |= 1u << guest.phases[0].heaps[0].writer;
    if (guest.zero_pct > 0)
      places |= 1u << guest.zero_where;
    phases |= 1u << zoo_phase_count(&guest);
    two_heaps += guest.phases[0].heaps[1].ws_mib > 0;
    disks += guest.disk_write_kib_per_s > 0;
    huge += guest.huge_pages;
    seen |= guest.busy_vcpus == 1 && guest.vcpus > 1 ? 1u : 0u;
    seen |= guest.busy_vcpus == guest.vcpus && guest.vcpus > 32 ? 2u : 0u;
    largest_mib = guest.memory_mib > largest_mib ? guest.memory_mib : largest_mib;
    smallest_mib = guest.memory_mib < smallest_mib ? guest.memory_mib : smallest_mib;
  }
  assert_int_equal(writers, 7);
  assert_int_equal(places, 7);
  assert_int_equal(phases, 1u << 1 | 1u << 2 | 1u << 5);
  assert_int_equal(seen, 3);
  assert_true(two_heaps > 100 && disks > 100 && huge > 100);
  assert_true(largest_mib > UINT64_C(16) << 20 && smallest_mib < 80);
}

static void same_seed_same_guests(void **unused) {
  char first[512], second[512];
  unsigned differ = 0;
  (void)unused;
  for (uint64_t i = 0; i < 100; i++) {
    ZooGuest guest = zoo_draw(ZOO_LAB, 3, i), again, other = zoo_draw(ZOO_LAB, 4, i);
    assert_true(zoo_find(guest.name, &again)); /* also by its name */
    zoo_phases_text(&guest, first, sizeof(first));
    zoo_phases_text(&again, second, sizeof(second));
    assert_string_equal(first, second);
    assert_int_equal(guest.memory_mib, again.memory_mib);
    assert_int_equal(guest.link_mbit, again.link_mbit);
    assert_int_equal(guest.vcpus, again.vcpus);
    assert_int_equal(guest.zero_pct, again.zero_pct);
    zoo_phases_text(&other, second, sizeof(second));
    differ += strcmp(first, second) != 0;
  }
  assert_true(differ > 95);
}

static void no_name_no_guest(void **unused) {
  static const char *const names[] = {"", "nobody", "quick", "quick-1", "quick-1-x", "quick-1-2x", "any--1"};
  (void)unused;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    ZooGuest guest;
    assert_false(zoo_find(names[i], &guest));
  }
}

static void nonsense_is_found(void **unused) {
  static const ZooGuest good = {
      .memory_mib = 256, .vcpus = 2, .busy_vcpus = 1, .link_mbit = 400, .phases = {{0, {{64, 20}}}}};
  ZooGuest bad[10];
  (void)unused;
  assert_null(zoo_problem(&good));
  assert_null(zoo_lab_problem(&good));
  for (size_t i = 0; i < 10; i++)
    bad[i] = good;
  bad[0].memory_mib = 63;
  bad[1].busy_vcpus = 3;
  bad[2].zero_pct = 96;
  bad[3].link_mbit = 0;
  bad[4].disk_write_kib_per_s = 1;
  bad[5].zero_pct = 80; /* 51 MiB are left for 64 */
  bad[6].phases[1] = good.phases[0];
  bad[7].phases[0].heaps[1] = (ZooHeap){0, 10, ZOO_IN_TURN};
  bad[8].phases[0].heaps[1] = (ZooHeap){8, 10, ZOO_ZIPF};
  bad[9].phases[0].duration_ms = 5000;
  bad[9].phases[1] = (ZooPhase){5000, {{64, 20, ZOO_AT_RANDOM}}};
  for (size_t i = 0; i < 10; i++)
    if (!zoo_problem(&bad[i]))
      fail_msg("row %zu makes no sense, but is let pass", i);
}

static void phases_have_a_text(void **unused) {
  ZooGuest guest = {
      .phases = {{250, {{6, 75}, {120, 8, ZOO_AT_RANDOM}}}, {5000, {{0}}}, {0, {{85, 90, ZOO_ZIPF}}}}};
  char text[128];
  (void)unused;
  zoo_phases_text(&guest, text, sizeof(text));
  assert_string_equal(text, "6/75+120/8r:250ms,0/0:5000ms,85/90z");
}

static void zipf_is_four_regions(void **unused) {
  static const ZooPhase phase = {0, {{85, 40, ZOO_ZIPF}}};
  ZooRegion regions[ZOO_HEAPS];
  uint64_t bytes = 0, rate = 0;
  (void)unused;
  zoo_phase_regions(&phase, regions);
  for (unsigned i = 0; i < ZOO_HEAPS; i++) {
    assert_true(regions[i].at_random);
    bytes += regions[i].bytes;
    rate += regions[i].bytes_per_s;
  }
  assert_int_equal(regions[0].bytes, MIG_MIB_BYTES);
  assert_int_equal(bytes, 85 * MIG_MIB_BYTES);
  assert_int_equal(rate, 40 * MIG_MIB_BYTES);
}

/* The migration begins within a phase: a cycle is as long as before, and ends with what had passed. */
static void simulated_phases_begin_anywhere(void **unused) {
  static const uint64_t durations_ms[] = {3000, 5000, 2000};
  ZooGuest guest;
  SimGuest sim;
  (void)unused;
  assert_true(zoo_find("bursts", &guest));
  zoo_sim_guest(&guest, 22000, &sim); /* two cycles and two seconds */
  assert_int_equal(sim.busy_pct, 11);
  assert_true(sim.repeat);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(sim.phases[i].duration_ms, durations_ms[i]);
    assert_int_equal(sim.phases[i].regions[0].ws_bytes, i == 1 ? 0 : 100 * MIG_MIB_BYTES);
  }
  assert_int_equal(sim.phases[3].duration_ms, 0);
  assert_true(zoo_find("mostly-zero", &guest));
  zoo_sim_guest(&guest, 1000, &sim);
  assert_false(sim.repeat);
  assert_int_equal(sim.phases[0].duration_ms, 0);
  assert_int_equal(sim.phases[0].regions[0].rate_bytes_per_s, 22 * MIG_MIB_BYTES);
  assert_int_equal(sim.phases[1].regions[0].ws_bytes, 0);
  assert_true(sim.zeroes == SIM_ZEROES_LAST && sim.zero_bytes > 175 * MIG_MIB_BYTES);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(named_guests_are_valid),
      cmocka_unit_test(drawn_guests_are_valid),
      cmocka_unit_test(draws_reach_the_corners),
      cmocka_unit_test(same_seed_same_guests),
      cmocka_unit_test(no_name_no_guest),
      cmocka_unit_test(nonsense_is_found),
      cmocka_unit_test(phases_have_a_text),
      cmocka_unit_test(zipf_is_four_regions),
      cmocka_unit_test(simulated_phases_begin_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
