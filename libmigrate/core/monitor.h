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

/* What to do, why, and what was seen: enough for one event or journal line. */
typedef struct MigAction {
  MigActionKind kind;
  MigCause cause;       /* of an abort */
  uint64_t downtime_ms; /* of SET_DOWNTIME and PAUSE; PAUSE with 0: stop the guest now */
  char message[512];    /* what was seen, predicted and chosen, with the numbers */
} MigAction;

const char *mig_action_name(MigActionKind kind);

/* The best result so far, of memory or disks. Times are on the monitor's clock of observation. */
typedef struct MigProgressMark {
  bool seen;
  uint64_t best_remaining_bytes;
  uint64_t at_ms;
} MigProgressMark;

/* Smooths a bandwidth over about two seconds from the bytes that moved between samples. */
typedef struct MigBandwidth {
  bool seen;
  bool have_rate;
  uint64_t at_ms;
  uint64_t processed_bytes;
  double known; /* how much of the average's weight has readings, 0 to 1 */
  double bytes_per_s;
} MigBandwidth;

/* How fast the stream goes through memory. It races through pages of zeroes, which says nothing about the link, and puts
 * next to nothing on the wire, which says nothing either. So what the guest dirties is reckoned by what was seen where
 * there were next to none of them, or after the first pass, when only what was written to is left. */
typedef struct MigPace {
  MigBandwidth all;     /* now, whatever it meets */
  MigBandwidth written; /* through memory that the guest has written to */
} MigPace;

/* How busy the busiest of the guest's vCPUs is, second by second, while nothing throttles them. */
typedef struct MigGuestLoad {
  bool counting; /* there is a reading to count from: the next two */
  uint64_t from_ms;
  uint64_t from_cpu_ms;
  bool seen;         /* at least one second: the next ones */
  double most_share; /* share of its CPU that it used in one second, 0 to 1 */
  double least_share;
  uint64_t calm_ms; /* when it was last calm, see choose.c; on the samples' clock */
} MigGuestLoad;

/* What a monitor must know about its predecessor in a killed process: kept with the job. */
typedef struct MigSteering {
  uint64_t downtime_ms; /* the last limit requested from libvirt; 0: none */
  bool pausing;         /* the guest was paused, or is about to be */
  unsigned refused;     /* ways tried without success: a bit for each MigWay */
} MigSteering;

/* Opaque by convention: only core and its tests look inside. A plain struct, so that it needs no allocation. */
typedef struct MigMonitor {
  MigPolicy policy;
  uint64_t start_ms;
  uint64_t memory_bytes;
  uint64_t disk_bytes;
  bool abort_asked;
  bool have_last;
  bool ended;     /* the last reading said that the migration is over */
  bool post_copy; /* sticky: no way back */
  bool counting;  /* the last step had statistics, so the time since then was observed */
  MigSample last; /* the last valid one of an active job */
  MigStage stage;
  uint64_t observed_ms;     /* runs only while statistics are read; the times below are on this clock */
  MigProgressMark memory;   /* the smallest dirty set at the start of a pass */
  unsigned stale_passes;    /* passes since then that started with no smaller one */
  MigProgressMark disk;     /* until all was copied once: a copy that is kept up to date makes no progress */
  uint64_t disk_owed_bytes; /* what that copy is behind, rather more than less */
  uint64_t last_flow_ms;    /* when data was last seen to move */
  uint64_t iteration_low_bytes; /* the lowest remaining in the current pass */
  uint64_t iteration_low_ms;
  uint64_t percent; /* never falls */

  /* For the choice of a way: choose.c. */
  MigPace pace;
  MigDirtyCurve curve;
  double cpu_share;
  uint64_t link_bytes_per_s; /* assumed at the start; 0: not known */
  uint64_t switch_ms;        /* 0: not known */
  MigWaysOpen open;
  MigForecast forecast; /* the last one */
  bool have_forecast;
  MigWay way;                 /* the way being followed; PRE_COPY at first */
  uint64_t way_since_ms;      /* of the sample at which it was chosen */
  uint64_t way_iteration;     /* and its pass */
  uint64_t looked_ms;         /* when the ways were last compared */
  uint64_t changed_ms;        /* when the guest was last seen to change its behaviour */
  uint64_t downtime_ms;       /* the limit given to QEMU */
  uint64_t most_downtime_ms;  /* highest that may be in force while unconfirmed; UINT64_MAX: any */
  uint64_t share_bytes_per_s; /* of a shared bandwidth; 0: not shared */
  uint64_t limit_iteration;   /* pass in which the downtime limit was set */
  uint64_t limit_asked_ms;    /* and when, on the samples' clock */
  uint64_t prior_downtime_ms; /* the previous limit, which stays in force if the new one is refused */
  uint64_t prior_most_downtime_ms;
  bool limit_refused;
  uint64_t limit_refused_ms; /* the last time */
  uint64_t pass_start_ms;    /* of the current pass, on the samples' clock */
  uint64_t pass_bytes;       /* dirty at its start */
  uint64_t pass_processed;   /* on the wire in all, at its start */
  bool pass_whole;           /* it was seen to start, and the guest has not changed since */
  uint64_t prior_pass_bytes; /* and at the start of the previous one */
  unsigned passes_seen;      /* passes that were seen to start */
  uint64_t worth_until_ms;   /* giving up earlier would throw away more than going on costs; 0: not known */
  uint64_t flow_begin_ms; /* when memory started to move: libvirt has copied all disks by then. 0: not yet */
  double recent_bytes_per_s; /* between the last two readings */
  uint64_t peak_bytes_per_s; /* the highest smoothed bandwidth of pre-copy */
  MigGuestLoad load;
  MigDirtyCurve unthrottled; /* the curve before QEMU began to throttle */
  unsigned unhelped;         /* passes that began under a throttle with as much as without it */
  /* QEMU's throttle: throttle.c. */
  unsigned throttle_initial_pct; /* as set at the start; for both, 0: QEMU's default */
  unsigned throttle_increment_pct;
  unsigned throttle_counts;     /* passes that QEMU may have counted towards its next step */
  uint64_t throttle_counted_ms; /* the earliest time of the last count */
  uint64_t switching_iteration; /* pass in which what remains was seen to fit the limit; 0: none */
  uint64_t over_cap_ms;         /* since when the throttle is above what is permitted; 0: it is not */
  bool stopped;                 /* someone has stopped the guest: it is not being throttled */
  uint64_t pause_wanted_ms;     /* since when a pause is postponed because the guest may calm down; 0: none */
} MigMonitor;

/* `start_ms` is when the migration began: after a re-attach the original time, so that deadlines hold. */
void mig_monitor_init(MigMonitor *monitor, const MigPolicy *policy, uint64_t start_ms, uint64_t memory_bytes,
                      uint64_t disk_bytes);

/* Takes over what the migration was started with: the ways it keeps open, the first downtime limit, and the probes'
 * results. Without it every permitted way counts as open and the limit as the goal. */
void mig_monitor_set_plan(MigMonitor *monitor, const MigPlan *plan);

/* What must survive a restart. Padding is cleared too, so that two can be compared as bytes. */
void mig_monitor_get_steering(const MigMonitor *monitor, MigSteering *ret_steering);

/* Continues where another monitor was; call it after mig_monitor_set_plan(). The limit in force is not known then:
 * the process may have been killed between recording a limit and requesting it. So it is requested again. */
void mig_monitor_take_up(MigMonitor *monitor, const MigSteering *steering);

/* Someone else decided on an action: follow it. */
void mig_monitor_note_taken(MigMonitor *monitor, MigActionKind kind);

/* libvirt refused an action: that way is closed, and the next best is taken. */
void mig_monitor_note_refused(MigMonitor *monitor, MigActionKind kind);

/* The last forecast; NULL: none yet. */
const MigForecast *mig_monitor_forecast(const MigMonitor *monitor);

/* Takes changed goals, which apply from the next step on. */
void mig_monitor_set_policy(MigMonitor *monitor, const MigPolicy *policy);

/* Its share of a bandwidth that several migrations use, besides its policy's own limit; 0: not shared. A stream that
 * reaches no more than its share does not mean a slow link. */
void mig_monitor_set_share(MigMonitor *monitor, uint64_t bytes_per_s);

/* The lower of the two limits; 0: none. */
uint64_t mig_monitor_limit_bytes_per_s(const MigMonitor *monitor);

/* One step. Call it at each reading; if the reading failed, with sample->valid false: that time does not count for
 * progress. ret_action is always written. An abort is decided only once. */
void mig_monitor_step(MigMonitor *monitor, const MigSample *sample, MigAction *ret_action);

/* The clock alone, a few times a second between readings: deadlines do not wait for statistics. Does not imply that
 * statistics can be read. */
void mig_monitor_tick(MigMonitor *monitor, uint64_t now_ms, MigAction *ret_action);

/* The deadline on the clock of start_ms, or UINT64_MAX for none. */
uint64_t mig_monitor_deadline_ms(const MigMonitor *monitor);

/* What the link was seen to carry, for the next forecast; 0: not known. Excludes post-copy, which waits for the
 * guest, the first second, and a stream that its share held back. */
uint64_t mig_monitor_link_bytes_per_s(const MigMonitor *monitor);

/* 0 to 99, never falls. */
unsigned mig_monitor_percent(const MigMonitor *monitor);

/* The stage according to the last sample. */
MigStage mig_monitor_stage(const MigMonitor *monitor);

/* Takes a reading of a counter of bytes sent, and returns the average in bytes per second; 0 until two readings tell. A counter
 * that falls begins anew. `bandwidth` is all zero at first. */
uint64_t mig_bandwidth_update(MigBandwidth *bandwidth, uint64_t now_ms, uint64_t processed_bytes);

/* At most so many vCPUs are watched. */
#define MIG_VCPUS 512

/* The CPU time of each vCPU at the last reading. */
typedef struct MigVcpus {
  unsigned n;
  uint64_t cpu_ms[MIG_VCPUS];
  uint64_t busiest_ms;
} MigVcpus;

/* Takes a reading of what each vCPU has used since it was created, and returns a time that grows from reading to reading by as
 * much as the busiest one has used. QEMU throttles each vCPU by itself: a guest with one busy vCPU of many is as busy as
 * that. `vcpus` is all zero at first. */
uint64_t mig_vcpus_update(MigVcpus *vcpus, const uint64_t *cpu_ms, unsigned n);
