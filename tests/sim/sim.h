/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The state of a simulation, between the engine (engine.c: clock, link, actions, samples) and QEMU (qemu.c). */
#pragma once

#include "tests/sim/engine.h"
#include "tests/sim/guest.h"

#define NEVER INT64_MAX
#define QUEUE 4

typedef enum State {
  STATE_SETUP,
  STATE_DISK,
  STATE_PRE_COPY,
  STATE_SWITCHOVER, /* the guest is stopped, the rest is sent */
  STATE_HANDOVER,   /* ... the buffer, the device state, the start at the target */
  STATE_TO_POST_COPY,
  STATE_POST_COPY,
  STATE_FINISH, /* the guest runs at the target */
  STATE_OVER
} State;

typedef struct Pending {
  MigActionKind kind;
  uint64_t downtime_ms;
  MigCause cause;
  int64_t at_us;
  unsigned event; /* its number */
} Pending;

typedef struct Sim {
  const SimScenario *scenario;
  const Strategy *strategy;
  void *strategy_state;
  SimResult *result;
  SimHost host;
  MigPolicy policy;
  SimDirtying dirtying;
  uint64_t random;

  int64_t now_us;
  State state;
  int64_t state_ends_us; /* of states that only wait */
  bool paused;
  int64_t paused_us, stopped_us;
  bool aborted;

  /* the link */
  unsigned link_step;
  double nominal; /* bytes/s, without jitter */
  double rate;
  int64_t jitter_ends_us;
  int64_t cut_us; /* since when; NEVER: it is alive */

  /* QEMU's memory: dirty bytes by region, of the rest, and of that the zero pages */
  double pending[SIM_REGIONS], rest, zero;
  double harvest[SIM_REGIONS]; /* what the last log had of each region */
  double wire_bytes, transferred;
  double zero_passed, normal_passed; /* memory that the stream has gone through, of both kinds */
  double disk_left, disk_sent;
  uint64_t iteration;
  int64_t look_us;       /* from when 50 ms are counted */
  int64_t busy_until_us; /* reading the log */
  int64_t window_us;
  double window_bytes; /* transferred at the window's begin */
  double window_rate;  /* of the last window, bytes/s; 0: none yet */
  double synced_bytes; /* remaining at the last sync */
  int64_t rate_us;     /* of the last sync that made a rate */
  double rate_transferred, period_dirty, dirty_rate;
  unsigned high_count, throttle_pct;
  double downtime_limit_ms;
  bool post_copy_asked;
  int64_t buffer_us; /* what the socket's buffer held at the switchover */

  /* post-copy */
  double missing_at_start, missing[SIM_REGIONS];
  double requests;

  /* the poll */
  int64_t poll_us;   /* when it is asked next */
  int64_t answer_us; /* when what was read is answered; NEVER: nothing is on its way */
  int64_t tick_us;
  MigSample sample;
  MigBandwidth bandwidth;
  Pending queue[QUEUE];
  unsigned queued;

  double lost_us, silence_us;
  int64_t over_cap_us;
  double cpu_us; /* processor time that the guest has used */
} Sim;

static inline double larger(double a, double b) {
  return a > b ? a : b;
}

static inline int64_t sooner(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* What the ready mirror is behind. */
double sim_disk_owed(const Sim *sim);

/* Dirty bytes that QEMU knows of. */
double sim_remaining(const Sim *sim);

bool sim_guest_runs_here(const Sim *sim);

/* The guest stood still since then. */
void sim_note_silence(Sim *sim, int64_t since_us);

void sim_end(Sim *sim, SimEnd how);

/* Bytes move and pages are dirtied until then. Nothing else happens in between. */
void sim_advance(Sim *sim, int64_t to_us);

/* When QEMU does something of its own next, if all rates stay; and does it, when the time has come. */
int64_t sim_qemu_next_us(const Sim *sim);
void sim_qemu_step(Sim *sim);
