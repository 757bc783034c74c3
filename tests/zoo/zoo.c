/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A zoo of guests: what is common to the named and the drawn. */
#include "tests/zoo/zoo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB UINT64_C(1048576)
#define GIB UINT64_C(1024) /* in MiB */

/* The guest of the lab is 32 bits wide: what holds anything but zeroes lies below the devices, from 3 GiB on. Its image and
 * its tables take RESERVED. */
#define LAB_LOW_MIB      (3 * GIB - 64)
#define LAB_RESERVED_MIB 4

enum {
  LAB_BUSY_VCPUS = 4,
  LAB_VCPUS = 16,
  LAB_DISK_MIB = 1024,
  LAB_LINK_MBIT = 10000,
  LAB_RATE_MIB_PER_S = 400 /* of an emulated CPU */
};

unsigned zoo_phase_count(const ZooGuest *guest) {
  unsigned n = 0;
  while (n < ZOO_PHASES && (guest->phases[n].duration_ms > 0 || guest->phases[n].heaps[0].ws_mib > 0))
    n++;
  return n > 0 ? n : 1; /* it may be idle for ever */
}

static uint64_t heap_extent_mib(const ZooGuest *guest, unsigned heap) {
  uint64_t extent_mib = 0;
  for (unsigned i = 0; i < zoo_phase_count(guest); i++)
    if (guest->phases[i].heaps[heap].ws_mib > extent_mib)
      extent_mib = guest->phases[i].heaps[heap].ws_mib;
  return extent_mib;
}

uint64_t zoo_written_mib(const ZooGuest *guest) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < ZOO_HEAPS; i++)
    sum += heap_extent_mib(guest, i);
  return sum;
}

uint64_t zoo_highest_rate_mib_per_s(const ZooGuest *guest) {
  uint64_t highest = 0;
  for (unsigned i = 0; i < zoo_phase_count(guest); i++) {
    uint64_t sum = 0;
    for (unsigned k = 0; k < ZOO_HEAPS; k++)
      sum += guest->phases[i].heaps[k].rate_mib_per_s;
    if (sum > highest)
      highest = sum;
  }
  return highest;
}

static const char *phase_problem(const ZooGuest *guest, unsigned i) {
  const ZooPhase *phase = &guest->phases[i], *first = &guest->phases[0];
  if (phase->duration_ms == 0 && i + 1 < zoo_phase_count(guest))
    return "a phase follows one that never ends";
  for (unsigned k = 0; k < ZOO_HEAPS; k++) {
    const ZooHeap *heap = &phase->heaps[k];
    if (heap->rate_mib_per_s > 0 && heap->ws_mib == 0)
      return "a rate without a working set";
    if (k > 0 && heap->ws_mib > 0 &&
        (phase->heaps[k - 1].ws_mib == 0 || phase->heaps[0].writer == ZOO_ZIPF || heap->writer == ZOO_ZIPF))
      return "a heap follows none, or there is another one beside Zipf's";
    if (heap->ws_mib > 0 && first->heaps[k].ws_mib > 0 && heap->writer != first->heaps[k].writer)
      return "a heap changes its writer";
  }
  return NULL;
}

const char *zoo_problem(const ZooGuest *guest) {
  if (guest->memory_mib < 64 || guest->memory_mib > 24 * GIB * GIB)
    return "its memory is not between 64 MiB and 24 TiB";
  if (guest->vcpus < 1 || guest->vcpus > 64 || guest->busy_vcpus < 1 || guest->busy_vcpus > guest->vcpus)
    return "it has not 1 to 64 vCPUs, or more busy ones than there are";
  if (guest->busy_pct > 95 || guest->zero_pct > 95)
    return "a share is more than 95 %";
  if (guest->link_mbit < 100 || guest->link_mbit > 400000)
    return "its link is not between 100 Mbit/s and 400 Gbit/s";
  if (guest->disk_write_kib_per_s > 0 && guest->disk_mib == 0)
    return "it writes to a disk that it has not";
  if (zoo_written_mib(guest) > guest->memory_mib * (100 - guest->zero_pct) / 100 - LAB_RESERVED_MIB)
    return "what it writes does not fit beside its zeroes";
  for (unsigned i = 0; i < zoo_phase_count(guest); i++) {
    const char *problem = phase_problem(guest, i);
    if (problem)
      return problem;
  }
  return NULL;
}

const char *zoo_lab_problem(const ZooGuest *guest) {
  uint64_t zero_mib = guest->memory_mib * guest->zero_pct / 100;
  uint64_t low_mib = guest->zero_where == ZOO_LAST ? guest->memory_mib - zero_mib : guest->memory_mib;
  if (guest->memory_mib > 16 * GIB || low_mib > LAB_LOW_MIB)
    return "its memory is too large, or not zero above 3 GiB";
  if (guest->vcpus > LAB_VCPUS || guest->busy_vcpus > LAB_BUSY_VCPUS)
    return "it has too many vCPUs";
  if (zoo_highest_rate_mib_per_s(guest) > LAB_RATE_MIB_PER_S)
    return "it writes faster than an emulator can";
  if (guest->disk_mib > LAB_DISK_MIB || guest->link_mbit > LAB_LINK_MBIT)
    return "its disk is too large, or its link too fast";
  return NULL;
}

void zoo_phase_regions(const ZooPhase *phase, ZooRegion ret_regions[ZOO_HEAPS]) {
  for (unsigned i = 0; i < ZOO_HEAPS; i++) {
    /* The widths of Zipf's regions are powers of four, of 85 in all. */
    const ZooHeap *heap = &phase->heaps[phase->heaps[0].writer == ZOO_ZIPF ? 0 : i];
    bool zipf = heap->writer == ZOO_ZIPF;
    uint64_t bytes = heap->ws_mib * MIB, rate = heap->rate_mib_per_s * MIB;
    ret_regions[i] = (ZooRegion){
        .bytes = zipf ? bytes / 85 * (UINT64_C(1) << (2 * i)) : bytes,
        .bytes_per_s = zipf ? rate / 4 : rate,
        .at_random = heap->writer != ZOO_IN_TURN,
    };
  }
}

static void append(char *text, size_t size, const char *piece) {
  size_t used = strlen(text);
  snprintf(text + used, size - used, "%s", piece);
}

void zoo_phases_text(const ZooGuest *guest, char *ret_text, size_t size) {
  static const char *const letters[] = {[ZOO_IN_TURN] = "", [ZOO_AT_RANDOM] = "r", [ZOO_ZIPF] = "z"};
  char piece[96];
  ret_text[0] = '\0';
  for (unsigned i = 0; i < zoo_phase_count(guest); i++) {
    const ZooPhase *phase = &guest->phases[i];
    for (unsigned k = 0; k == 0 || (k < ZOO_HEAPS && phase->heaps[k].ws_mib > 0); k++) {
      const ZooHeap *heap = &phase->heaps[k];
      snprintf(piece, sizeof(piece), "%s%" PRIu64 "/%" PRIu64 "%s", k > 0 ? "+" : (i > 0 ? "," : ""),
               heap->ws_mib, heap->rate_mib_per_s, letters[heap->writer]);
      append(ret_text, size, piece);
    }
    if (phase->duration_ms > 0) {
      snprintf(piece, sizeof(piece), ":%" PRIu64 "ms", phase->duration_ms);
      append(ret_text, size, piece);
    }
  }
}

const char *zoo_where_name(ZooWhere where) {
  static const char *const names[] = {
      [ZOO_LAST] = "last", [ZOO_FIRST] = "first", [ZOO_SCATTERED] = "scattered"};
  return names[where];
}
