/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How a migration will go: what the guest dirties, and from that the time, the pause and the price of each way out. */
#pragma once

#include "libmigrate/core/policy.h"
#include "libmigrate/core/types.h"

/* --- what the guest dirties --- */

#define MIG_DIRTY_POINTS 8

/* In so much time the guest dirtied so many distinct bytes. */
typedef struct MigDirtyPoint {
  double s;
  double bytes;
} MigDirtyPoint;

/* The dirtying curve f(τ): distinct bytes dirtied in τ seconds. It rises from 0, never falls, and bends down, since
 * a page that is dirty already costs nothing to dirty again: f saturates at the working set. Between and beyond the points
 * that were seen it is known only within bounds, and both are given:
 *   lower: chords between the points and to the origin, constant beyond the last (a guest that writes its working
 *          set in turn lies on it, and most do);
 *   upper: no concave curve through the points lies above it. */
typedef struct MigDirtyCurve {
  MigDirtyPoint points[MIG_DIRTY_POINTS]; /* by s */
  unsigned n;
  unsigned observations; /* since it was begun anew */
  unsigned changes;      /* how often it was begun anew because the guest had changed */
} MigDirtyCurve;

/* Takes an observation. What cannot be true together with what was seen before (by more than 40 %) means that the guest does
 * something else now: the curve begins anew with this point. False then. Nonsense (no time) is ignored. */
bool mig_dirty_curve_observe(MigDirtyCurve *curve, double s, double bytes);

/* Forgets the points, for a change that was expected: another throttle. */
void mig_dirty_curve_restart(MigDirtyCurve *curve);

/* Distinct bytes that the guest dirties in s seconds: at least, and at most. 0 if s is not above 0, or nothing was
 * observed. */
double mig_dirty_curve_lower(const MigDirtyCurve *curve, double s);
double mig_dirty_curve_upper(const MigDirtyCurve *curve, double s);

/* --- how it will go --- */

/* The ways to end a migration, cheapest risk first. */
typedef enum MigWay {
  MIG_WAY_PRE_COPY,
  MIG_WAY_AUTO_CONVERGE,
  MIG_WAY_PAUSE,
  MIG_WAY_POST_COPY,
  MIG_WAY_COUNT
} MigWay;

const char *mig_way_name(MigWay way);

/* Where the migration stands. Bytes, bytes/s, seconds. Before the start: elapsed 0, all memory remaining. */
typedef struct MigStanding {
  double memory_bytes;    /* all there is */
  double remaining_bytes; /* of the pass under way */
  double pass_bytes;      /* that it had at its start; the first: all memory */
  double pass_s;          /* since its start */
  bool first_pass;
  double bandwidth_bytes_per_s; /* 0: not known, nothing can be said */
  double elapsed_s;
  double deadline_s;     /* from the migration's start; 0: none */
  unsigned throttle_pct; /* under which the curve was seen */
  bool last_throttle;    /* QEMU's next step would be above what is permitted */
  unsigned high_passes;  /* that QEMU has counted towards that step: at the second one it takes it */
  double counted_s;      /* from when it counted last to the begin of this pass */
  double cpu_share;      /* of its CPUs that the guest uses unthrottled, 0 to 1; 0: not known */
  double switch_s;       /* what the switch takes beside the memory; 0: not known */
} MigStanding;

/* Why a way is not open. */
typedef enum MigWayBar {
  MIG_WAY_OPEN,
  MIG_WAY_NOT_PERMITTED,   /* by the policy */
  MIG_WAY_NOT_STARTED_FOR, /* it would have to be asked for at the start */
  MIG_WAY_REFUSED,         /* libvirt refused it, or QEMU did not do it */
  MIG_WAY_NEVER_ENDS,      /* the guest dirties faster than the link carries */
  MIG_WAY_PAUSE_TOO_LONG,
  MIG_WAY_TOO_LATE, /* after the deadline */
  MIG_WAY_CAPPED,   /* QEMU would slow the guest down by more than is permitted before it ends */
  MIG_WAY_UNKNOWN,  /* no bandwidth or nothing of the guest is known yet */
  MIG_WAY_BAR_COUNT
} MigWayBar;

const char *mig_way_bar_name(MigWayBar bar);

/* One way, from now on. */
typedef struct MigWayForecast {
  MigWayBar bar;
  double total_s;        /* from the migration's start to its end */
  double pause_s;        /* the longest silence of the guest: at the switch, or of one stop of the throttle */
  double lost_s;         /* guest work lost: stopped, throttled, waiting for pages */
  double bytes;          /* still to be sent */
  double error_s;        /* total_s may be off by so much, each way */
  unsigned passes;       /* still to come, of pre-copy */
  unsigned throttle_pct; /* of auto-converge */
  double downtime_s;     /* the downtime limit to set for it */
} MigWayForecast;

typedef struct MigForecast {
  MigWayForecast ways[MIG_WAY_COUNT];
  double floor_s; /* the shortest pause that pre-copy can ever reach on this link: F / B */
  MigWay best;    /* of the open ones, or MIG_WAY_COUNT: none is */
} MigForecast;

/* What is open, beside the policy. */
typedef struct MigWaysOpen {
  bool auto_converge; /* started for it, or not started yet */
  bool post_copy;
  bool refused[MIG_WAY_COUNT];
} MigWaysOpen;

/* Predicts every way, and chooses. */
void mig_forecast(const MigDirtyCurve *curve, const MigStanding *standing, const MigPolicy *policy,
                  const MigWaysOpen *open, MigForecast *ret_forecast);

/* The downtime limit that QEMU may be given for a goal: QEMU counts only the memory, and the switch comes on top, so that
 * is taken off (of a goal too short for it, half). */
uint64_t mig_downtime_limit_ms(uint64_t goal_ms);

/* A second of silence is worth so many of a longer migration: users feel the one, and not the other. */
#define MIG_PAUSE_WEIGHT 20.0

/* What a way costs, in seconds: its time, its pause by its weight, the guest's lost work once. Only for comparing. */
double mig_way_cost(const MigWayForecast *way);

/* --- the start --- */

/* What was measured of the guest before the start; all zero: nothing was. */
typedef struct MigProbe {
  MigDirtyCurve curve;
  double cpu_share; /* of its CPUs that it used, 0 to 1; 0: not known */
} MigProbe;

/* What is known of the way to a target: configured, or learned from earlier moves. */
typedef struct MigLinkFacts {
  uint64_t bandwidth_bytes_per_s; /* 0: not known */
  uint64_t switch_ms; /* the silence of a guest that has next to nothing left to send; 0: not known */
} MigLinkFacts;

/* How a migration is to be started. */
typedef struct MigPlan {
  bool post_copy; /* ask for it, so that it can be switched to */
  bool auto_converge;
  unsigned throttle_initial_pct;   /* 0: QEMU's own */
  unsigned throttle_increment_pct; /* 0: QEMU's own */
  uint64_t downtime_ms;            /* the first limit; the monitor raises it where lower does not pay */
  MigProbe probe;
  uint64_t bandwidth_bytes_per_s; /* that it reckons with; 0: not known */
  uint64_t switch_ms;             /* as well */
  MigForecast forecast;
} MigPlan;

/* Forecasts the migration of a guest of so much memory, and says how to start it. If the probe is all zero, or neither the link nor
 * the policy has a bandwidth, every way is MIG_WAY_UNKNOWN and the plan follows the policy alone. */
void mig_plan(const MigProbe *probe, uint64_t memory_bytes, const MigLinkFacts *link, const MigPolicy *policy,
              MigPlan *ret_plan);

/* In words: which way, how long, which pause; or why none. Cut to size. */
void mig_forecast_describe(const MigForecast *forecast, char *ret_text, size_t size);
