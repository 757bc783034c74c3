/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guests of the zoo for the simulator. */
#include "tests/zoo/sim-guest.h"

/* A phase that is under way when the migration begins is cut in two. */
_Static_assert(SIM_PHASES > ZOO_PHASES && SIM_REGIONS >= ZOO_HEAPS, "a guest of the zoo fits the simulator");

static SimPhase sim_phase(const ZooPhase *phase, uint64_t duration_ms) {
  SimPhase sim = {.duration_ms = duration_ms};
  ZooRegion regions[ZOO_HEAPS];
  zoo_phase_regions(phase, regions);
  for (unsigned i = 0; i < ZOO_HEAPS; i++)
    sim.regions[i] = (SimRegion){.ws_bytes = regions[i].bytes,
                                 .rate_bytes_per_s = regions[i].bytes_per_s,
                                 .writer = regions[i].at_random ? SIM_WRITER_RANDOM : SIM_WRITER_CYCLIC};
  return sim;
}

/* An emulated CPU of the lab spends a tenth of its time on 200 MiB/s. */
static unsigned busy_pct(const ZooGuest *guest) {
  uint64_t pct = zoo_highest_rate_mib_per_s(guest) / guest->busy_vcpus / 20 + 1;
  return guest->busy_pct > 0 ? guest->busy_pct : (unsigned)(pct < 95 ? pct : 95);
}

static const SimZeroes zeroes[] = {
    [ZOO_LAST] = SIM_ZEROES_LAST, [ZOO_FIRST] = SIM_ZEROES_FIRST, [ZOO_SCATTERED] = SIM_ZEROES_SCATTERED};

void zoo_sim_guest(const ZooGuest *guest, uint64_t begun_ms, SimGuest *ret_guest) {
  unsigned count = zoo_phase_count(guest), first = 0, n = 0;
  bool repeat = guest->phases[count - 1].duration_ms > 0;
  *ret_guest = (SimGuest){
      .memory_bytes = guest->memory_mib * MIG_MIB_BYTES,
      .zero_bytes = guest->memory_mib * MIG_MIB_BYTES / 100 * guest->zero_pct,
      .zeroes = zeroes[guest->zero_where],
      .vcpus = guest->vcpus,
      .busy_vcpus = guest->busy_vcpus,
      .huge_pages = guest->huge_pages,
      .repeat = repeat,
      .busy_pct = busy_pct(guest),
      .disk_bytes = guest->disk_mib * MIG_MIB_BYTES,
      .disk_write_bytes_per_s = guest->disk_write_kib_per_s * 1024,
  };
  while (guest->phases[first].duration_ms > 0 && begun_ms >= guest->phases[first].duration_ms) {
    begun_ms -= guest->phases[first].duration_ms;
    first = (first + 1) % count;
  }
  const ZooPhase *under_way = &guest->phases[first];
  ret_guest->phases[n++] =
      sim_phase(under_way, under_way->duration_ms ? under_way->duration_ms - begun_ms : 0);
  for (unsigned i = first + 1; i < (repeat ? first + count : count); i++)
    ret_guest->phases[n++] = sim_phase(&guest->phases[i % count], guest->phases[i % count].duration_ms);
  if (repeat && begun_ms > 0)
    ret_guest->phases[n] = sim_phase(under_way, begun_ms);
}

uint64_t zoo_link_bytes_per_s(const ZooGuest *guest) {
  return guest->link_mbit * 125000 * 1448 / 1514;
}
