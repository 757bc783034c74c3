/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest, a link and QEMU's migration under a virtual clock, steered by a Strategy. No clock, no I/O. */
#pragma once

#include "tests/sim/strategy.h"

/* How a part of the guest's memory is written. τ is the guest's own time since the dirty log was read. */
typedef enum SimWriter {
  SIM_WRITER_CYCLIC, /* over and over in order: min(dτ, W) bytes are dirty */
  SIM_WRITER_RANDOM, /* at random places: W(1 − e^(−dτ/W)) */
} SimWriter;

typedef struct SimRegion {
  uint64_t ws_bytes;         /* W; 0: there is no such region */
  uint64_t rate_bytes_per_s; /* d, unthrottled */
  SimWriter writer;
} SimRegion;

#define SIM_REGIONS 4
#define SIM_PHASES  8

/* Where QEMU meets the pages of zeroes in its first pass, which goes through memory in order. */
typedef enum SimZeroes {
  SIM_ZEROES_SCATTERED,
  SIM_ZEROES_FIRST,
  SIM_ZEROES_LAST, /* as on a guest that never filled its memory */
} SimZeroes;

/* A phase: what is written for some time. Region i of one phase and region i of the next begin at the same
 * page, so the smaller of the two lies within the larger. */
typedef struct SimPhase {
  uint64_t duration_ms; /* 0: for ever */
  SimRegion regions[SIM_REGIONS];
} SimPhase;

typedef struct SimGuest {
  uint64_t memory_bytes;
  uint64_t zero_bytes; /* of it, pages that hold zeroes: 9 bytes each on the wire, in the first pass */
  SimZeroes zeroes;
  SimPhase phases[SIM_PHASES]; /* ended by one without regions and duration */
  bool repeat;                 /* the phases begin anew; else the last one stays */
  unsigned vcpus, busy_vcpus;  /* 0: one; the writing is that of the busy ones, in equal shares */
  unsigned
      busy_pct; /* of a busy vCPU that the writing takes: throttling slows it only beyond the rest. 0: 100 */
  unsigned device_pct;             /* so much of the writing is by devices, which no throttle slows */
  bool huge_pages;                 /* of 2 MiB: post-copy fetches them whole. Dirty are 4 KiB all the same */
  unsigned noise_pct;              /* the rates vary by up to so much, anew every half second */
  uint64_t disk_bytes;             /* copied before the memory, where the policy says so */
  uint64_t disk_write_bytes_per_s; /* and mirrored for as long as the migration runs */
  uint64_t
      disk_owed_bytes; /* the most that the mirror is behind once it is ready; 0: what is written in 100 ms */
  bool passthrough;
} SimGuest;

#define SIM_LINK_STEPS 16

typedef struct SimLinkStep {
  uint64_t at_ms;
  uint64_t bytes_per_s; /* of payload; 0: cut */
} SimLinkStep;

typedef struct SimLink {
  uint64_t bytes_per_s;              /* until the first step */
  SimLinkStep steps[SIM_LINK_STEPS]; /* by time; ended by one at 0 ms */
  unsigned jitter_pct;               /* the rate varies by up to so much, anew every 100 ms */
  unsigned latency_ms;               /* there and back */
} SimLink;

typedef enum SimFaultKind {
  SIM_FAULT_NONE,
  SIM_FAULT_NO_STATS,   /* samples in the window are not valid */
  SIM_FAULT_SLOW_STATS, /* an answer takes value_ms; the next question waits for it */
  SIM_FAULT_REFUSE,     /* the action is refused */
  SIM_FAULT_SLOW_ACTION /* the action takes effect value_ms later */
} SimFaultKind;

typedef struct SimFault {
  SimFaultKind kind;
  uint64_t from_ms, until_ms; /* until 0: for ever */
  MigActionKind action;
  uint64_t value_ms;
} SimFault;

#define SIM_FAULTS 6

/* What the hypervisors themselves take. Without a fixed downtime in a scenario: sim_host_default. */
typedef struct SimHost {
  unsigned setup_ms;          /* libvirt's Prepare, until the stream begins */
  unsigned fixed_downtime_ms; /* stop, device state, start at the target */
  unsigned finish_ms;         /* Finish and Confirm, the guest already runs */
  uint64_t buffer_bytes;      /* QEMU takes for sent what the socket and the link's queue still hold: */
  unsigned buffer_ms;         /* so many bytes, and at most so long */
  uint64_t scan_bytes_per_s;  /* the migration thread's own limit: finding and checking pages */
} SimHost;

extern const SimHost sim_host_default;

typedef struct SimScenario {
  const char *group, *name;
  const char *what; /* half a sentence, for the golden file */
  SimGuest guest;
  SimLink link;
  SimHost host;
  const char *goals;       /* "allow_post_copy=yes max_pause_ms=4s", over the defaults */
  const MigPolicy *policy; /* instead of goals */
  SimFault faults[SIM_FAULTS];
  unsigned miss_pct; /* so many of the samples are missing */
  bool no_probe;     /* no dirty-rate probe was made */
  bool link_unknown; /* the link's rate is neither configured nor learned */
  uint64_t seed;
  uint64_t give_up_ms; /* end of the simulation; 0: six hours */
} SimScenario;

typedef enum SimEnd {
  SIM_END_PRE_COPY,         /* completed by the guest's switchover */
  SIM_END_PAUSED,           /* completed while the guest was paused */
  SIM_END_POST_COPY,        /* completed in post-copy */
  SIM_END_ABORTED,          /* by the strategy; the guest runs at the source (again) */
  SIM_END_LINK_LOST,        /* keepalive, in pre-copy: the guest runs at the source */
  SIM_END_POST_COPY_BROKEN, /* keepalive, in post-copy: waits for a recovery */
  SIM_END_GAVE_UP,          /* no end within give_up_ms: never good */
  SIM_END_COUNT
} SimEnd;

typedef enum SimOutcome { SIM_OUTCOME_DONE, SIM_OUTCOME_REFUSED, SIM_OUTCOME_TOO_LATE } SimOutcome;

/* One action, with the sample that led to it. */
typedef struct SimEvent {
  uint64_t at_ms; /* of the migration */
  MigSample sample;
  MigAction action;
  SimOutcome outcome;
  uint64_t cut_ms; /* for so long no byte could pass; 0: the link is alive */
} SimEvent;

#define SIM_EVENTS 64

typedef struct SimResult {
  SimEnd end;
  MigCause cause;                 /* of SIM_END_ABORTED */
  uint64_t total_ms;              /* from the call to its return */
  uint64_t downtime_ms;           /* the switchover: nobody ran the guest. 0 if there was none */
  uint64_t switchover_disk_bytes; /* that the mirror still owed then, which are part of it */
  uint64_t pause_ms;              /* from a pause that was asked for until the guest ran again */
  uint64_t longest_silence_ms;    /* the longest of downtime, pause, throttle stall, page fault */
  uint64_t lost_work_ms;          /* guest time that was lost to any of them */
  uint64_t wire_bytes;            /* that went over the link, disks included */
  uint64_t iterations;
  unsigned max_throttle_pct;
  uint64_t over_cap_ms; /* for so long the guest ran throttled above what the policy permits */
  uint64_t polls;
  StrategyStart start;
  /* The last switchover's model: what was left, what QEMU thought of the link, what it had been told. */
  uint64_t switchover_remaining_bytes;
  uint64_t switchover_bandwidth_bytes_per_s;
  uint64_t switchover_limit_ms;
  unsigned action_count; /* may be more than are kept */
  SimEvent events[SIM_EVENTS];
} SimResult;

/* Runs a scenario to its end. Same scenario and strategy, same result. */
void sim_run(const SimScenario *scenario, const Strategy *strategy, SimResult *ret_result);

const char *sim_end_name(SimEnd end);

/* True if the guest is at the target and all of it. */
static inline bool sim_end_is_success(SimEnd end) {
  return end <= SIM_END_POST_COPY;
}

/* The policy that a scenario has. Returns false on goals that do not parse. */
bool sim_policy(const SimScenario *scenario, MigPolicy *ret_policy);

/* Our own monitor behind the seam. */
extern const Strategy strategy_handoffd;
