/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Watches one running migration: samples in, at most one action out. No clock and no I/O of its own. */
#pragma once

#include "libmigrate/core/forecast.h"
#include "libmigrate/core/policy.h"
#include "libmigrate/core/types.h"

typedef enum MigActionKind {
  MIG_ACTION_NONE,
  MIG_ACTION_ABORT,
  MIG_ACTION_SET_DOWNTIME,
  MIG_ACTION_START_POST_COPY,
  MIG_ACTION_PAUSE,
  MIG_ACTION_COUNT
} MigActionKind;

/* What to do, why, and what was seen: enough for one line of an event or of the journal. */
typedef struct MigAction {
  MigActionKind kind;
  MigCause cause; /* of an abort */
  uint64_t
      downtime_ms; /* of SET_DOWNTIME, and of PAUSE: the limit under which QEMU stops the guest at a pass's end
                         * (PAUSE with 0: stop it now) */
  char message[512]; /* what was seen, foreseen and chosen, with the numbers */
} MigAction;

const char *mig_action_name(MigActionKind kind);

/* The best of what was reached so far, of memory or of disks. Times are of the monitor's own clock of
 * observation. */
typedef struct MigProgressMark {
  bool seen;
  uint64_t best_remaining_bytes;
  uint64_t at_ms;
} MigProgressMark;

/* How busy the guest's CPUs are, second by second, while nothing slows them down. */
typedef struct MigGuestLoad {
  bool counting; /* there is a reading to count from: these two */
  uint64_t from_ms;
  uint64_t from_cpu_ms;
  bool seen;         /* a second at least: these */
  double most_share; /* of its CPUs that it was seen to use in a second, 0 to 1 */
  double least_share;
  uint64_t
      calm_ms; /* when it last used much less than most, or as little as ever; in the clock of the samples */
} MigGuestLoad;

/* What a monitor has to know of the one before it, in a process that was killed: kept with the job. */
typedef struct MigSteering {
  uint64_t downtime_ms; /* the limit that libvirt was asked for last; 0: none */
  bool pausing;         /* the guest is to be paused, or was */
  unsigned refused;     /* ways tried in vain: a bit for each MigWay */
} MigSteering;

/* Opaque by custom: only monitor.c and its tests look inside. A plain struct, so that it needs no memory of
 * its own. */
typedef struct MigMonitor {
  MigPolicy policy;
  uint64_t start_ms;
  uint64_t memory_bytes;
  uint64_t disk_bytes;
  bool abort_asked;
  bool have_last;
  bool ended;     /* the last reading said that there is no migration any more */
  bool post_copy; /* sticky: there is no way back */
  bool counting;  /* the last step had numbers, so that the time since then was observed */
  MigSample last; /* the last valid one of an active job */
  MigStage stage;
  uint64_t observed_ms;   /* runs only while numbers are read; the times below are of this clock */
  MigProgressMark memory; /* the smallest dirty set at the start of a pass */
  unsigned stale_passes;  /* that began with no smaller one since */
  MigProgressMark disk;
  uint64_t last_flow_ms;        /* when bytes were last seen to move */
  uint64_t iteration_low_bytes; /* the lowest remaining of the iteration under way */
  uint64_t iteration_low_ms;
  uint64_t percent; /* never falls */

  /* What the choice of a way goes by: choose.c. */
  MigDirtyCurve curve;
  double cpu_share;
  uint64_t switch_ms; /* 0: not known */
  MigWaysOpen open;
  MigForecast forecast; /* the last one */
  bool have_forecast;
  MigWay way;             /* that is being followed; PRE_COPY at first */
  uint64_t way_since_ms;  /* of the sample that it was taken at */
  uint64_t way_iteration; /* and in which pass */
  uint64_t looked_ms;     /* when the ways were last compared */
  uint64_t changed_ms;    /* when the guest was last seen to do something else */
  uint64_t downtime_ms;   /* the limit that QEMU was given */
  uint64_t
      most_downtime_ms; /* that may be in force, where it is not known to have taken that one; UINT64_MAX: any */
  uint64_t
      share_bytes_per_s;    /* of a bandwidth that it has with others; 0: it has all that the link carries */
  uint64_t limit_iteration; /* in which it was set */
  uint64_t limit_asked_ms;  /* likewise: when, in the clock of the samples */
  uint64_t prior_downtime_ms; /* the limit before, which holds where it was refused */
  uint64_t prior_most_downtime_ms;
  bool limit_refused;
  uint64_t limit_refused_ms; /* the last time */
  uint64_t pass_start_ms;    /* of the pass under way, in the clock of the samples */
  uint64_t pass_bytes;       /* dirty at its start */
  uint64_t pass_processed;   /* sent in all, at its start */
  bool pass_whole;           /* it began before our eyes, of a guest that was the same since */
  uint64_t prior_pass_bytes; /* and at that of the one before */
  unsigned passes_seen;      /* that began before our eyes */
  uint64_t flow_begin_ms;    /* when bytes began to move */
  double recent_bytes_per_s; /* from the reading before to the last */
  uint64_t peak_bytes_per_s; /* the most that pre-copy was seen to send, of the smoothed bandwidth */
  MigGuestLoad load;
  /* QEMU's throttle: throttle.c. */
  unsigned throttle_initial_pct; /* as the migration was started with; 0: QEMU's own, of both */
  unsigned throttle_increment_pct;
  unsigned throttle_counts;     /* passes since its last step that QEMU may have counted towards the next */
  uint64_t throttle_counted_ms; /* the earliest time of the last one */
  uint64_t switching_iteration; /* in which what remains was seen to fit the limit; 0: it was not */
  uint64_t over_cap_ms;         /* since when it was seen to be above what is permitted; 0: it is not */
  bool stopped;                 /* somebody has stopped the guest: it is not slowed down */
  uint64_t pause_wanted_ms;     /* since when a pause is put off for a guest that may calm down; 0: none is */
} MigMonitor;

/* `start_ms` is when the migration began: on a re-attach the original one, so that deadlines hold. */
void mig_monitor_init(MigMonitor *monitor, const MigPolicy *policy, uint64_t start_ms, uint64_t memory_bytes,
                      uint64_t disk_bytes);

/* Takes what the migration was started with: the ways that it keeps open, the first downtime limit, and what the
 * probes saw. Without it every permitted way counts as open and the limit as the goal. */
void mig_monitor_set_plan(MigMonitor *monitor, const MigPlan *plan);

/* What is to be known after a restart. All of it is set, so that two can be compared as bytes. */
void mig_monitor_get_steering(const MigMonitor *monitor, MigSteering *ret_steering);

/* Goes on where another monitor was: after mig_monitor_set_plan(). Which limit is in force nobody knows then, for the process may
 * have been killed between what it wrote down and what it asked for; so it is asked for anew. */
void mig_monitor_take_up(MigMonitor *monitor, const MigSteering *steering);

/* Somebody else decided on an action: it is followed. */
void mig_monitor_note_taken(MigMonitor *monitor, MigActionKind kind);

/* libvirt refused an action: that way is closed, and the next one is taken. */
void mig_monitor_note_refused(MigMonitor *monitor, MigActionKind kind);

/* The last forecast, or NULL: nothing can be said yet. */
const MigForecast *mig_monitor_forecast(const MigMonitor *monitor);

/* Takes changed goals. They hold from the next step on. */
void mig_monitor_set_policy(MigMonitor *monitor, const MigPolicy *policy);

/* What it may use of a bandwidth that it shares with other migrations, beside its policy's own limit; 0: all. A link that
 * carries no more than that is neither slow nor ill. */
void mig_monitor_set_share(MigMonitor *monitor, uint64_t bytes_per_s);

/* The lower of the two limits that it has; 0: none. */
uint64_t mig_monitor_limit_bytes_per_s(const MigMonitor *monitor);

/* One step. To be called at each reading; with sample->valid false where it failed, for which time progress is not judged.
 * ret_action is always written. An abort is decided once. */
void mig_monitor_step(MigMonitor *monitor, const MigSample *sample, MigAction *ret_action);

/* The clock alone, between readings, some times a second: deadlines do not wait for numbers. Says nothing of whether
 * numbers can be read. */
void mig_monitor_tick(MigMonitor *monitor, uint64_t now_ms, MigAction *ret_action);

/* The deadline in the clock of start_ms, or UINT64_MAX for none. */
uint64_t mig_monitor_deadline_ms(const MigMonitor *monitor);

/* What the link was seen to carry, for the next forecast over it; 0: not known. Not of post-copy, which waits for the guest,
 * nor of the first second, nor what was no more than its share. */
uint64_t mig_monitor_link_bytes_per_s(const MigMonitor *monitor);

/* 0 to 99, never falls. */
unsigned mig_monitor_percent(const MigMonitor *monitor);

/* What stage the last sample shows. */
MigStage mig_monitor_stage(const MigMonitor *monitor);

/* Smooths a bandwidth over about two seconds from the bytes that moved between samples. */
typedef struct MigBandwidth {
  bool seen;
  bool have_rate;
  uint64_t at_ms;
  uint64_t processed_bytes;
  double known; /* the share of the average's weight that readings have, 0 to 1 */
  double bytes_per_s;
} MigBandwidth;

/* Takes a reading of a counter of bytes sent, and returns the average in bytes per second; 0 until two readings tell. A counter
 * that falls begins anew. `bandwidth` is all zero at first. */
uint64_t mig_bandwidth_update(MigBandwidth *bandwidth, uint64_t now_ms, uint64_t processed_bytes);
