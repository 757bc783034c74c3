/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guests that nobody thought of: drawn from a seed. */
#include "tests/zoo/zoo.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GIB                UINT64_C(1024) /* in MiB */
#define LEAST_NOT_ZERO_MIB 24

typedef struct Range {
  const char *name;
  uint64_t memory_mib[2], link_mbit[2];
  unsigned vcpus, busy_vcpus;
  uint64_t disk_mib[2];
  bool huge_pages;
  uint64_t rate_mib_per_s;
} Range;

static const Range ranges[] = {
    [ZOO_ANY] = {"any", {64, 24 * GIB *GIB}, {1000, 400000}, 64, 64, {1024, 4 * GIB *GIB}, true, 40 * GIB},
    [ZOO_LAB] = {"lab", {64, 16 * GIB}, {200, 2000}, 16, 4, {16, 1024}, false, 400},
    [ZOO_QUICK] = {"quick", {64, 512}, {200, 1000}, 4, 4, {16, 128}, false, 400},
};

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014) */
static uint64_t next(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t below(uint64_t *state, uint64_t n) {
  return next(state) % n;
}

static bool chance(uint64_t *state, unsigned pct) {
  return below(state, 100) < pct;
}

/* Each power of two is as likely as any other. */
static uint64_t between(uint64_t *state, uint64_t least, uint64_t most) {
  double at = (double)(next(state) >> 11) * 0x1p-53;
  uint64_t value = (uint64_t)((double)least * pow((double)most / (double)least, at));
  return value < least ? least : (value > most ? most : value);
}

/* A working set, and a rate from a thirtieth of the link to three times as much: a third cannot converge. */
static ZooHeap draw_heap(uint64_t *state, const Range *range, uint64_t most_mib, uint64_t link_mib_per_s) {
  ZooHeap heap = {.writer = chance(state, 50) ? ZOO_IN_TURN : ZOO_AT_RANDOM};
  uint64_t least_rate = link_mib_per_s / 30 + 1, most_rate = link_mib_per_s * 3;
  if (most_rate > range->rate_mib_per_s)
    most_rate = range->rate_mib_per_s;
  heap.ws_mib = between(state, most_mib / 50 + 1, most_mib);
  heap.rate_mib_per_s = between(state, least_rate, most_rate);
  return heap;
}

static ZooPhase at_rate(ZooPhase phase, uint64_t numerator, uint64_t denominator, uint64_t duration_ms) {
  phase.heaps[0].rate_mib_per_s = phase.heaps[0].rate_mib_per_s * numerator / denominator;
  phase.duration_ms = duration_ms;
  return phase;
}

static void draw_phases(uint64_t *state, const Range *range, ZooGuest *guest) {
  uint64_t room_mib = guest->memory_mib * (100 - guest->zero_pct) / 100 - 4,
           link_mib_per_s = guest->link_mbit / 9;
  uint64_t kind = below(state, 8), unit_ms = between(state, 200, 10000);
  ZooPhase whole = {.heaps = {draw_heap(state, range, room_mib * 3 / 4, link_mib_per_s)}};
  switch (kind) {
  case 0: /* hot and cold */
    whole.heaps[0].writer = ZOO_ZIPF;
    guest->phases[0] = whole;
    break;
  case 1: /* two heaps, the first as fast as it is small */
    whole = at_rate(whole, 1, 2, 0);
    whole.heaps[0].ws_mib = whole.heaps[0].ws_mib / 2 + 1;
    whole.heaps[1] = draw_heap(state, range, room_mib / 5, link_mib_per_s);
    whole.heaps[1].rate_mib_per_s = whole.heaps[1].rate_mib_per_s / 2;
    guest->phases[0] = whole;
    break;
  case 2: /* bursts */
    guest->phases[0] = at_rate(whole, 1, 1, unit_ms);
    guest->phases[1] = at_rate(whole, 0, 1, between(state, 200, 10000));
    break;
  case 3: /* stop and go */
    guest->phases[0] = at_rate(whole, 1, 1, unit_ms / 4);
    guest->phases[1] = at_rate(whole, 1, 20, unit_ms);
    break;
  case 4: /* ramping */
    for (unsigned i = 0; i < 5; i++)
      guest->phases[i] = at_rate(whole, i + 1, 5, unit_ms);
    break;
  case 5: /* it changes once, and stays so */
    guest->phases[0] = at_rate(whole, 1, 4, unit_ms);
    guest->phases[1] = whole;
    break;
  default: /* steady */
    guest->phases[0] = whole;
  }
}

/* As nobody moves terabytes over a gigabit: all of the memory would take between three seconds and twenty minutes. */
static uint64_t draw_link(uint64_t *state, const Range *range, uint64_t memory_mib) {
  uint64_t mbit = memory_mib * 9 / between(state, 3, 1200);
  uint64_t least = range->link_mbit[0], most = range->link_mbit[1];
  mbit = mbit < least ? between(state, least, 2 * least) : mbit;
  return (mbit < most ? mbit : most) / 100 * 100;
}

ZooGuest zoo_draw(ZooRange kind, uint64_t seed, uint64_t n) {
  const Range *range = &ranges[kind];
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) ^ (n + 1) * UINT64_C(0xd1b54a32d192ed03);
  ZooGuest guest = {.what = "drawn"};
  snprintf(guest.name, sizeof(guest.name), "%s-%" PRIu64 "-%" PRIu64, range->name, seed, n);
  guest.memory_mib = between(&state, range->memory_mib[0], range->memory_mib[1]);
  guest.link_mbit = draw_link(&state, range, guest.memory_mib);
  if (chance(&state, 60)) {
    uint64_t most_pct = 100 - LEAST_NOT_ZERO_MIB * 100 / guest.memory_mib;
    guest.zero_pct = (unsigned)below(&state, most_pct < 95 ? most_pct : 96);
    guest.zero_where = (ZooWhere)below(&state, 3);
  }
  /* The lab holds no more than 2 GiB that are not zero, and these lie first. */
  if (kind != ZOO_ANY && guest.memory_mib > 2 * GIB) {
    guest.zero_where = ZOO_LAST;
    guest.zero_pct = 100 - (unsigned)(2 * GIB * 100 / guest.memory_mib);
    if (guest.zero_pct < 40 || guest.zero_pct > 95)
      guest.zero_pct = guest.zero_pct < 40 ? 40 : 95;
  }
  guest.vcpus = (unsigned)between(&state, 1, range->vcpus);
  guest.busy_vcpus = chance(&state, 50) ? 1 : guest.vcpus;
  if (guest.busy_vcpus > range->busy_vcpus)
    guest.busy_vcpus = range->busy_vcpus;
  guest.busy_pct = chance(&state, 50) ? (unsigned)below(&state, guest.busy_vcpus > 1 ? 30 : 60) : 0;
  draw_phases(&state, range, &guest);
  guest.huge_pages = range->huge_pages && chance(&state, 30);
  if (chance(&state, 15)) {
    guest.disk_mib = between(&state, range->disk_mib[0], range->disk_mib[1]);
    guest.disk_write_kib_per_s =
        between(&state, 64, guest.link_mbit * 100 / 5); /* up to a fifth of the link */
  }
  return guest;
}

bool zoo_find(const char *name, ZooGuest *ret_guest) {
  size_t n;
  const ZooGuest *named = zoo_list(&n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(named[i].name, name) == 0) {
      *ret_guest = named[i];
      return true;
    }
  for (unsigned kind = ZOO_ANY; kind <= ZOO_QUICK; kind++) {
    size_t length = strlen(ranges[kind].name);
    uint64_t seed, number;
    int end = 0;
    if (strncmp(name, ranges[kind].name, length) == 0 &&
        sscanf(name + length, "-%" SCNu64 "-%" SCNu64 "%n", &seed, &number, &end) == 2 &&
        name[length + (size_t)end] == '\0') {
      *ret_guest = zoo_draw((ZooRange)kind, seed, number);
      return true;
    }
  }
  return false;
}
