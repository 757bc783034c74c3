/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The guests that have a name. */
#include "tests/zoo/zoo.h"

#define GIB UINT64_C(1024) /* in MiB */
#define TIB (1024 * GIB)

#define ONE_CPU       .vcpus = 1, .busy_vcpus = 1
#define FOR_EVER(...) .phases = {{0, {__VA_ARGS__}}}
#define QUICK         .memory_mib = 256, .link_mbit = 400

static const ZooGuest guests[] = {
    /* for the lab: of 256 MiB and over 400 Mbit/s, some 45 MiB/s, unless the row says otherwise */
    {"idle", "writes nothing", QUICK, ONE_CPU},
    {"mostly-zero", "72 MiB written in turn, the rest zero: nearly half of the link", QUICK, ONE_CPU,
     FOR_EVER({72, 22}), .zero_pct = 70},
    {"calm", "64 MiB in turn, at less than half of the link", QUICK, ONE_CPU, FOR_EVER({64, 20})},
    {"near", "100 MiB in turn, at nearly the link's rate", QUICK, ONE_CPU, FOR_EVER({100, 40})},
    {"hopeless", "100 MiB in turn, at four times the link's rate", QUICK, ONE_CPU, FOR_EVER({100, 200}),
     .busy_pct = 55},
    {"random", "96 MiB at random places", QUICK, ONE_CPU, FOR_EVER({96, 12, ZOO_AT_RANDOM})},
    {"random-near", "96 MiB at random places, at the link's rate", QUICK, ONE_CPU,
     FOR_EVER({96, 45, ZOO_AT_RANDOM})},
    {"zipf", "hot and cold pages, at half of the link", QUICK, ONE_CPU, FOR_EVER({170, 24, ZOO_ZIPF})},
    {"zipf-hot", "hot and cold pages, at twice the link", QUICK, ONE_CPU, FOR_EVER({85, 90, ZOO_ZIPF}),
     .busy_pct = 30},
    {"two-heaps", "laps of 80 and of 200 ms: faster than the link, but small", QUICK, ONE_CPU,
     FOR_EVER({6, 75}, {6, 30})},
    {"two-speeds", "a small hot heap beside a large cool one", QUICK, ONE_CPU,
     FOR_EVER({4, 60}, {120, 8, ZOO_AT_RANDOM})},
    {"bursts", "100 MiB in turn at 200 MiB/s, five seconds on, five off", QUICK, ONE_CPU,
     .phases = {{5000, {{100, 200}}}, {5000, {{0}}}}},
    {"ramp", "ever faster, then from the start", QUICK, ONE_CPU,
     .phases = {{3000, {{96, 4}}},
                {3000, {{96, 10}}},
                {3000, {{96, 20}}},
                {3000, {{96, 30}}},
                {3000, {{96, 45}}},
                {3000, {{96, 70}}}}},
    {"database", "stop and go: a checkpoint each second, little in between", QUICK, ONE_CPU,
     .phases = {{250, {{64, 100, ZOO_AT_RANDOM}}}, {750, {{64, 4, ZOO_AT_RANDOM}}}}},
    {"one-of-four", "four vCPUs, one busy", QUICK, .vcpus = 4, .busy_vcpus = 1, FOR_EVER({64, 20}),
     .busy_pct = 30},
    {"four-of-four", "four vCPUs, all busy", QUICK, .vcpus = 4, .busy_vcpus = 4, FOR_EVER({64, 24})},
    {"zero-first", "the first half of its memory is zero", QUICK, ONE_CPU, FOR_EVER({48, 16}), .zero_pct = 50,
     .zero_where = ZOO_FIRST},
    {"zero-scattered", "half of its pages are zero, here and there", .memory_mib = 512, .link_mbit = 400,
     ONE_CPU, FOR_EVER({64, 20}), .zero_pct = 50, .zero_where = ZOO_SCATTERED},
    {"disk-writer", "writes 4 MiB/s to its disk and never stops", QUICK, ONE_CPU, FOR_EVER({32, 10}),
     .disk_mib = 64, .disk_write_kib_per_s = 4096},
    {"huge-pages", "its memory is huge pages", QUICK, ONE_CPU, FOR_EVER({64, 20}), .huge_pages = true},
    {"small", "64 MiB, of which it writes a quarter", .memory_mib = 64, .link_mbit = 400, ONE_CPU,
     FOR_EVER({16, 8})},
    {"zero-4g", "4 GiB, nine tenths of them zero", .memory_mib = 4 * GIB, .link_mbit = 1000, ONE_CPU,
     FOR_EVER({128, 40}), .zero_pct = 90},
    {"zero-16g", "16 GiB, nearly all of them zero", .memory_mib = 16 * GIB, .link_mbit = 1000, .vcpus = 8,
     .busy_vcpus = 2, FOR_EVER({256, 50}), .zero_pct = 95},
    /* for a simulator */
    {"web-16g", "a web server in use", .memory_mib = 16 * GIB, .link_mbit = 10000, .vcpus = 4,
     .busy_vcpus = 4, FOR_EVER({1024, 120, ZOO_ZIPF}), .busy_pct = 40, .zero_pct = 30,
     .zero_where = ZOO_SCATTERED},
    {"build-64g", "compiles: large bursts of fresh memory", .memory_mib = 64 * GIB, .link_mbit = 25000,
     .vcpus = 32, .busy_vcpus = 32, .phases = {{20000, {{16 * GIB, 3 * GIB}}}, {10000, {{4 * GIB, 400}}}},
     .busy_pct = 90, .zero_pct = 40},
    {"java-256g", "a young generation written in turn beside an old one", .memory_mib = 256 * GIB,
     .link_mbit = 25000, .vcpus = 32, .busy_vcpus = 16,
     FOR_EVER({8 * GIB, 1500}, {64 * GIB, 100, ZOO_AT_RANDOM}), .busy_pct = 60, .zero_pct = 20},
    {"database-1t", "checkpoints of a large database", .memory_mib = TIB, .link_mbit = 100000, .vcpus = 64,
     .busy_vcpus = 48,
     .phases = {{15000, {{200 * GIB, 10 * GIB, ZOO_AT_RANDOM}}}, {45000, {{200 * GIB, GIB, ZOO_AT_RANDOM}}}},
     .busy_pct = 70, .huge_pages = true},
    {"in-memory-6t", "hot and cold, and much of it", .memory_mib = 6 * TIB, .link_mbit = 200000, .vcpus = 64,
     .busy_vcpus = 64, FOR_EVER({TIB, 6 * GIB, ZOO_ZIPF}), .busy_pct = 80, .huge_pages = true},
    {"in-memory-24t", "the largest", .memory_mib = 24 * TIB, .link_mbit = 400000, .vcpus = 64,
     .busy_vcpus = 64, FOR_EVER({4 * TIB, 12 * GIB, ZOO_ZIPF}), .busy_pct = 80, .zero_pct = 10,
     .huge_pages = true},
    {"archive-2t", "hardly written to, but with a disk that never stops", .memory_mib = 512 * GIB,
     .link_mbit = 10000, .vcpus = 8, .busy_vcpus = 1, FOR_EVER({2 * GIB, 50}), .zero_pct = 80,
     .disk_mib = 2 * TIB, .disk_write_kib_per_s = 150 * GIB},
};

const ZooGuest *zoo_list(size_t *ret_n) {
  *ret_n = sizeof(guests) / sizeof(guests[0]);
  return guests;
}
