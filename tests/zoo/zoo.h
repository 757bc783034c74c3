/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A zoo of guests: one definition for the simulator, the lab and the benchmarks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZOO_HEAPS  4
#define ZOO_PHASES 7

typedef enum ZooWriter {
  ZOO_IN_TURN, /* page after page, over and over */
  ZOO_AT_RANDOM,
  ZOO_ZIPF, /* hot and cold: see zoo_phase_regions */
} ZooWriter;

/* A piece of memory, as the guest writes it. Heap i of one phase and heap i of the next begin at the same page. */
typedef struct ZooHeap {
  uint64_t ws_mib; /* 0: there is none */
  uint64_t rate_mib_per_s;
  ZooWriter writer;
} ZooHeap;

typedef struct ZooPhase {
  uint64_t duration_ms; /* 0: for ever. If the last one has an end, all begin anew. */
  ZooHeap heaps[ZOO_HEAPS];
} ZooPhase;

typedef enum ZooWhere { ZOO_LAST, ZOO_FIRST, ZOO_SCATTERED } ZooWhere;

typedef struct ZooGuest {
  char name[40];
  const char *what;
  uint64_t memory_mib;
  unsigned vcpus, busy_vcpus; /* the busy ones have equal shares of each heap */
  unsigned busy_pct; /* of its CPU that a busy one uses, at the highest rate; 0: as little as it takes */
  ZooPhase phases[ZOO_PHASES]; /* ended by one without heaps and duration */
  unsigned zero_pct;           /* of the memory, pages that hold zeroes; all others differ */
  ZooWhere zero_where;
  bool huge_pages;
  uint64_t disk_mib; /* to be copied; 0: no disk */
  uint64_t disk_write_kib_per_s;
  uint64_t link_mbit; /* that it is to be moved over */
} ZooGuest;

/* What a guest is drawn for. */
typedef enum ZooRange {
  ZOO_ANY,   /* up to 24 TiB and 400 Gbit/s: for a simulator */
  ZOO_LAB,   /* what tests/lab can start */
  ZOO_QUICK, /* of these, what has moved within seconds */
} ZooRange;

/* The named guests. */
const ZooGuest *zoo_list(size_t *ret_n);

/* Always the same guest for the same arguments. Its name says them: "quick-SEED-N". */
ZooGuest zoo_draw(ZooRange range, uint64_t seed, uint64_t n);

/* By name, also of a guest that was drawn. */
bool zoo_find(const char *name, ZooGuest *ret_guest);

/* NULL if the definition makes sense; else why it does not. */
const char *zoo_problem(const ZooGuest *guest);

/* NULL if the lab can start it; else why it cannot. */
const char *zoo_lab_problem(const ZooGuest *guest);

unsigned zoo_phase_count(const ZooGuest *guest);

/* MiB of memory that any phase writes to. */
uint64_t zoo_written_mib(const ZooGuest *guest);

/* Of the phase that writes most. */
uint64_t zoo_highest_rate_mib_per_s(const ZooGuest *guest);

typedef struct ZooRegion {
  uint64_t bytes, bytes_per_s;
  bool at_random; /* else in turn */
} ZooRegion;

/* A phase as plain regions, without Zipf's law: a heap of W bytes that is written by it are four regions of W/85, 4W/85,
 * 16W/85 and 64W/85, each with a quarter of the writes at random places. (A page's chance falls with its rank, in four steps.) */
void zoo_phase_regions(const ZooPhase *phase, ZooRegion ret_regions[ZOO_HEAPS]);

/* "WS/RATE+WS/RATEr:250ms,0/0:5s": what the lab's guest takes. r: at random, z: by Zipf's law */
void zoo_phases_text(const ZooGuest *guest, char *ret_text, size_t size);

const char *zoo_where_name(ZooWhere where);
