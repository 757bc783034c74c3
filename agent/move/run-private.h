/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to the files of a run: its state, and which file handles which of its worker's reports. */
#pragma once

#include "agent/move/bandwidth.h"
#include "agent/move/run.h"
#include "agent/worker/worker.h"
#include "libmigrate/core/monitor.h"

/* In post-copy: do bytes flow? Reset when the migration call has returned, and at each attempt to resume. */
typedef struct JobFlow {
  bool known;
  uint64_t bytes;    /* at the last sample */
  uint64_t moved_ms; /* when it last rose, or was first seen */
  unsigned rises;
} JobFlow;

struct JobRun {
  Mover *mover;
  Job *job;
  Worker *worker;
  MigMonitor monitor;
  bool monitoring;
  bool adopted;  /* it may have been migrating since before this process started */
  bool go_given; /* the migration may be in progress */
  uint64_t prepare_until_ms;
  MigProbe probe;       /* measured before the start */
  bool avoid_post_copy; /* its checks say so */
  BandwidthMember bandwidth;
  GError *error;   /* of the migration call, if nobody had requested an abort before */
  bool have_final; /* from libvirt's event */
  MigFinalStats final;
  uint64_t keep_again_ms; /* when to retry writing what was learned; 0: nothing to write */
  bool pause_wanted;      /* the record claims a pause that the worker has not done or not reported yet */
  uint64_t limits_due_ms; /* when to set its own bandwidth limits again; 0: nothing to set */
  bool limits_refused;    /* reported once */
  bool silent;            /* libvirtd reports no statistics; reported once */
  bool times_lag;         /* the last statistics were of a later part than the job's times */
  JobFlow flow;
  uint64_t deaf_since_ms; /* since when QEMU reports as intact a stream that moves nothing; 0: it does not */
  bool operator_called;
  bool asks_operator; /* the outcome is open, and only an operator can know it: see remedy.h */
};

/* --- monitoring.c --- */

/* The migration starts, or the agent takes it over after a restart. */
void monitoring_start(JobRun *run);
void monitoring_step(JobRun *run, const MigSample *sample);
void monitoring_tick(JobRun *run, uint64_t now_ms);
/* The job's policy has changed. */
void monitoring_retune(JobRun *run);
void monitoring_note_refused(JobRun *run, MigActionKind kind);
/* Notes what a monitor needs after a restart. True: that has changed and must be written to the record. */
bool monitoring_note_steering(JobRun *run);

/* --- pause.c --- */

/* Copies the worker's knowledge of the pause into the record. True: that has changed and must be written. */
bool run_note_pause(JobRun *run);

/* --- limits.c --- */

/* Sets both limits in libvirt; the second has no effect if the migration was started without post-copy. 0: no limit. */
void limits_set(JobRun *run, uint64_t bytes_per_s, uint64_t post_copy_bytes_per_s);
/* Sets the job's own limits. */
void limits_set_own(JobRun *run);
/* It no longer shares the bandwidth. The job keeps its share until libvirt has accepted the other limits. */
void limits_lift_share(JobRun *run);
/* The result of setting the limits; retries until libvirt accepts them. False: the failure was already reported. */
bool limits_note_set(JobRun *run, const GError *error);
void limits_tick(JobRun *run, uint64_t now_ms);

/* --- timing.c --- */

/* Of the source. */
void timing_on_event(JobRun *run, const MigVirtEvent *event);
void timing_on_resumed(JobRun *run, const WorkerReport *report);
void timing_on_sample(JobRun *run);
void timing_on_returned(JobRun *run, const GError *error);
/* The migration succeeded. `final` may be NULL. */
void timing_take_downtime(JobRun *run, const WorkerReport *report, const MigFinalStats *final);

/* --- outcome.c --- */

void outcome_on_returned(JobRun *run, const WorkerReport *report);

/* Ends the run, or starts a new one: do not use it after this. */
void outcome_on_settled(JobRun *run, const WorkerReport *report);

/* --- recover.c --- */

void recover_on_unsettled(JobRun *run, const WorkerReport *report);
/* The commands that settle the job in the state of both ends. The caller's; NULL: there are none. */
char *recover_describe_remedy(const JobRun *run, const WorkerReport *report);
void recover_on_touching(JobRun *run, const WorkerReport *report);
void recover_on_touched(JobRun *run, const WorkerReport *report);
void recover_on_attached(JobRun *run, const WorkerReport *report);

/* Checks whether bytes flow: detects post-copy that stalls or continues. */
void recover_on_sample(JobRun *run, const MigSample *sample);
