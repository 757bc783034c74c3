/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to the files of a run: what it is, and what each does of its worker's reports. */
#pragma once

#include "agent/move/bandwidth.h"
#include "agent/move/run.h"
#include "agent/worker/worker.h"
#include "libmigrate/core/monitor.h"

/* Of a post-copy: do bytes flow? Begun anew when its call has returned, and at each try to resume it. */
typedef struct JobFlow {
  bool known;
  uint64_t bytes;    /* as of the last sample */
  uint64_t moved_ms; /* when that last rose, or it was begun */
  unsigned rises;
} JobFlow;

struct JobRun {
  Mover *mover;
  Job *job;
  Worker *worker;
  MigMonitor monitor;
  bool monitoring;
  bool adopted;  /* it may be under way since before this process */
  bool go_given; /* the migration may be under way */
  uint64_t prepare_until_ms;
  MigProbe probe; /* what was measured before the start */
  BandwidthMember bandwidth;
  GError *error;   /* what the migration's call said, and nobody had asked for an end before */
  bool have_final; /* from libvirt's event */
  MigFinalStats final;
  uint64_t keep_again_ms; /* what was learnt is to be written again then; 0: it is not */
  bool pause_wanted;      /* the record claims a pause, which the worker has not done yet, or not told */
  uint64_t
      limits_due_ms; /* when its own limits of the bandwidth are to be set again; 0: they are as they are to be */
  bool limits_refused; /* said once */
  bool silent;         /* libvirtd does not tell the numbers; said once */
  JobFlow flow;
  uint64_t deaf_since_ms; /* QEMU calls a stream whole that moves nothing; 0: it does not */
  bool operator_called;
  bool asks_operator; /* the outcome is open, and only an operator knows: see remedy.h */
};

/* --- monitoring.c --- */

/* The migration begins, or is taken up again. */
void monitoring_start(JobRun *run);
void monitoring_step(JobRun *run, const MigSample *sample);
void monitoring_tick(JobRun *run, uint64_t now_ms);
/* The job's policy has changed. */
void monitoring_retune(JobRun *run);
void monitoring_note_refused(JobRun *run, MigActionKind kind);
/* What a monitor after a restart is to know. True: that has changed, and is to be written down. */
bool monitoring_note_steering(JobRun *run);

/* --- pause.c --- */

/* Takes what the worker knows of its pause into the record. True: that has changed, and is to be written down. */
bool run_note_pause(JobRun *run);

/* --- limits.c --- */

/* Has libvirt set both limits, of which the second is of no use to a migration that was not started for post-copy. 0: none. */
void limits_set(JobRun *run, uint64_t bytes_per_s, uint64_t post_copy_bytes_per_s);
/* The job's own. */
void limits_set_own(JobRun *run);
/* It shares no bandwidth any more. The job has its share until libvirt has taken the other limits. */
void limits_lift_share(JobRun *run);
/* The job's policy has them, so libvirt is to have them: whoever refuses, or is away, is asked again. False: that was said before. */
bool limits_note_set(JobRun *run, const GError *error);
void limits_tick(JobRun *run, uint64_t now_ms);

/* --- outcome.c --- */

void outcome_on_returned(JobRun *run, const WorkerReport *report);

/* Ends the run, or begins it anew: it is not to be used after this. */
void outcome_on_settled(JobRun *run, const WorkerReport *report);

/* --- recover.c --- */

void recover_on_unsettled(JobRun *run, const WorkerReport *report);
/* The commands that settle what both ends say. The caller's; NULL: there are none. */
char *recover_describe_remedy(const JobRun *run, const WorkerReport *report);
void recover_on_touching(JobRun *run, const WorkerReport *report);
void recover_on_touched(JobRun *run, const WorkerReport *report);
void recover_on_attached(JobRun *run, const WorkerReport *report);

/* Looks at whether bytes flow: a post-copy that stands still, or goes on again, is noticed here. */
void recover_on_sample(JobRun *run, const MigSample *sample);
