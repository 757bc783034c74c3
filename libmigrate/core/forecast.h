/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a migration will go: what the guest dirties, and from that the time, pause and cost of each way to finish. */
#pragma once

#include "libmigrate/core/policy.h"
#include "libmigrate/core/types.h"

/* --- what the guest dirties --- */

#define MIG_DIRTY_POINTS 8

/* How many distinct bytes the guest dirtied in how much time. */
typedef struct MigDirtyPoint {
  double s;
  double bytes;
} MigDirtyPoint;

/* The dirtying curve f(τ): distinct bytes dirtied in τ seconds. It rises from 0, never falls, and flattens, since
 * dirtying a dirty page again costs nothing: f saturates at the working set. Between and beyond the observed points
 * it is only known within two bounds:
 *   lower: chords between the points and to the origin, constant beyond the last (exact for a guest that writes its
 *          working set in turn, as most do);
 *   upper: no concave curve through the points lies above it. */
typedef struct MigDirtyCurve {
  MigDirtyPoint points[MIG_DIRTY_POINTS]; /* by s */
  unsigned n;
  unsigned observations; /* since the curve was restarted */
  unsigned changes;      /* how often it was restarted because the guest had changed */
} MigDirtyCurve;

/* Adds an observation. If it contradicts the earlier ones (by more than 40 %), the guest now does something else: the
 * curve restarts with this point, and the result is false. Nonsense (no time) is ignored. */
bool mig_dirty_curve_observe(MigDirtyCurve *curve, double s, double bytes);

/* Forgets the points, for an expected change: another throttle. */
void mig_dirty_curve_restart(MigDirtyCurve *curve);

/* Distinct bytes that the guest dirties in s seconds: at least, and at most. 0 if s is not above 0, or nothing was
 * observed. */
double mig_dirty_curve_lower(const MigDirtyCurve *curve, double s);
double mig_dirty_curve_upper(const MigDirtyCurve *curve, double s);

/* --- how it will go --- */

/* The ways to finish a migration, lowest risk first. */
typedef enum MigWay {
  MIG_WAY_PRE_COPY,
  MIG_WAY_AUTO_CONVERGE,
  MIG_WAY_PAUSE,
  MIG_WAY_POST_COPY,
  MIG_WAY_COUNT
} MigWay;

const char *mig_way_name(MigWay way);

/* Where the migration stands, in bytes, bytes/s and seconds. Before the start: elapsed 0, all memory remaining. Bytes are
 * those of memory unless they are on the wire, where a page of zeroes is next to nothing. */
typedef struct MigStanding {
  double memory_bytes;    /* all of the guest's memory */
  double remaining_bytes; /* of the current pass */
  double pass_bytes;      /* at the start of the pass; the first: all memory */
  double pass_wire_bytes; /* what the pass puts on the wire; 0: as much */
  double pass_s;          /* since its start */
  double rest_s;          /* until its end; 0: the remaining bytes at the bandwidth */
  bool first_pass;
  double bandwidth_bytes_per_s; /* of memory that the guest has written to. 0: not known, so no forecast */
  double disk_s;                /* what the copy of disks is behind takes at the switchover */
  double sync_s;                /* reading the dirty log, between two passes and at the switchover */
  double elapsed_s;
  double deadline_s;     /* from the migration's start; 0: none */
  unsigned throttle_pct; /* in force while the curve was observed */
  bool last_throttle;    /* QEMU's next step would exceed what is permitted */
  unsigned high_passes;  /* passes that QEMU has counted towards that step: the second one triggers it */
  double counted_s;      /* from when it last counted to the start of this pass */
  double cpu_share;      /* share of its CPU that the busiest vCPU uses unthrottled, 0 to 1; 0: not known */
  double switch_s;       /* duration of the switchover besides the memory; 0: not known */
} MigStanding;

/* Why a way is not open. */
typedef enum MigWayBar {
  MIG_WAY_OPEN,
  MIG_WAY_NOT_PERMITTED,   /* the policy forbids it */
  MIG_WAY_NOT_STARTED_FOR, /* it was not enabled when the migration started */
  MIG_WAY_REFUSED,         /* libvirt refused it, or QEMU did not do it */
  MIG_WAY_NEVER_ENDS,      /* the guest dirties faster than the link carries */
  MIG_WAY_PAUSE_TOO_LONG,
  MIG_WAY_TOO_LATE, /* after the deadline */
  MIG_WAY_CAPPED,   /* QEMU would throttle the guest by more than is permitted before it ends */
  MIG_WAY_USELESS,  /* auto-converge: throttled, the guest dirtied as much as before */
  MIG_WAY_UNKNOWN,  /* the bandwidth or the guest's behaviour is not known yet */
  MIG_WAY_BAR_COUNT
} MigWayBar;

const char *mig_way_bar_name(MigWayBar bar);

/* One way, from now on. */
typedef struct MigWayForecast {
  MigWayBar bar;
  double total_s;        /* from the migration's start to its end */
  double pause_s;        /* the guest's longest silence: at the switchover, or in one stop of the throttle */
  double lost_s;         /* guest time lost: stopped, throttled, waiting for pages */
  double bytes;          /* still to be sent */
  double error_s;        /* total_s may be off by this much either way */
  unsigned passes;       /* pre-copy passes still to come */
  unsigned throttle_pct; /* of auto-converge */
  double downtime_s;     /* the downtime limit to set for it */
} MigWayForecast;

typedef struct MigForecast {
  MigWayForecast ways[MIG_WAY_COUNT];
  double floor_s; /* the shortest pause that pre-copy can ever reach on this link: F / B */
  MigWay best;    /* of the open ways; MIG_WAY_COUNT: none is open */
} MigForecast;

/* What is open, apart from the policy. */
typedef struct MigWaysOpen {
  bool auto_converge; /* enabled at the start, or not started yet */
  bool post_copy;
  bool refused[MIG_WAY_COUNT];
  bool throttle_useless; /* it was seen not to slow the guest's writing */
} MigWaysOpen;

/* Predicts every way and chooses the best. */
void mig_forecast(const MigDirtyCurve *curve, const MigStanding *standing, const MigPolicy *policy,
                  const MigWaysOpen *open, MigForecast *ret_forecast);

/* The downtime limit to give QEMU for a goal. QEMU counts only the memory, and the switchover comes on top, so that
 * is subtracted (or half, if the goal is too short for that). */
uint64_t mig_downtime_limit_ms(uint64_t goal_ms);

/* One second of silence weighs as much as this many seconds of a longer migration: users notice only the silence. */
#define MIG_PAUSE_WEIGHT 20.0

/* The strongest throttle for a policy: max_throttle_pct, or less, as QEMU stops a vCPU for 10 ms × p/(100−p) at a time, which
 * must fit max_downtime_ms. 0 to 99. */
unsigned mig_throttle_cap_pct(const MigPolicy *policy);

/* What a way costs, in seconds: its time, its weighted pause, and the guest's lost time. Only for comparison. */
double mig_way_cost(const MigWayForecast *way);

/* --- the start --- */

/* What was measured of the guest before the start; all zero: nothing. */
typedef struct MigProbe {
  MigDirtyCurve curve;
  double cpu_share;        /* share of its CPU that the busiest vCPU uses, 0 to 1; 0: not known */
  uint64_t resident_bytes; /* of the host's memory that it uses: the rest of its own is zero; 0: not known */
} MigProbe;

/* What is known of the link to a target: configured, or learned from earlier migrations. */
typedef struct MigLinkFacts {
  uint64_t bandwidth_bytes_per_s; /* 0: not known */
  uint64_t switch_ms;             /* the guest's silence with next to nothing left to send; 0: not known */
} MigLinkFacts;

/* How to start a migration. */
typedef struct MigPlan {
  bool post_copy; /* enable it, so that the migration can switch to it */
  bool auto_converge;
  unsigned throttle_initial_pct;   /* 0: QEMU's own */
  unsigned throttle_increment_pct; /* 0: QEMU's own */
  uint64_t downtime_ms;            /* the first limit; the monitor raises it when another pass does not pay */
  MigProbe probe;
  uint64_t bandwidth_bytes_per_s; /* assumed; 0: not known */
  uint64_t switch_ms;             /* likewise */
  MigForecast forecast;
} MigPlan;

/* Forecasts the migration of a guest of so much memory, and says how to start it. If the probe is all zero, or neither the link nor
 * the policy has a bandwidth, every way is MIG_WAY_UNKNOWN and the plan follows the policy alone. */
void mig_plan(const MigProbe *probe, uint64_t memory_bytes, const MigLinkFacts *link, const MigPolicy *policy,
              MigPlan *ret_plan);

/* In words: each permitted way's time and pause, or why it is closed. Truncated to fit. */
void mig_forecast_describe(const MigForecast *forecast, char *ret_text, size_t size);
