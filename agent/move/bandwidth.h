/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What each running migration may use of MaxBandwidth=: core/shares.h, with jobs for members. */
#pragma once

#include "agent/move/mover.h"
#include "agent/move/run.h"
#include "libmigrate/core/shares.h"

/* Of a run; zeros are a good beginning. */
typedef struct BandwidthMember {
  MigShare share;
  bool in;
  bool seen;         /* at its stream: libvirt takes limits that the start does not overwrite */
  bool refused;      /* said once, until it is taken */
  bool was_held_up;  /* by a cut, after which a limit is not known to hold */
  uint64_t since_ms; /* it waits to begin */
  uint64_t again_ms; /* after a refusal */
  uint64_t dirty;    /* bytes/s that its guest was seen to dirty; 0: not known */
} BandwidthMember;

Bandwidth *bandwidth_new(const Config *config);
void bandwidth_free(Bandwidth *bandwidth);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Bandwidth, bandwidth_free)

/* The job's checks have passed; its local disks, if it copies them, are so many. run_begin() follows: at once where there is no
 * MaxBandwidth=, else when its share is free. */
void bandwidth_join(JobRun *run, unsigned disks);

/* It is under way since before this process, and may be using all. */
void bandwidth_adopt(JobRun *run);

/* It is over. Others get what it had with the next bandwidth_step(). */
void bandwidth_leave(JobRun *run);

/* Does it wait for a share, with nothing begun? */
bool bandwidth_waits(const JobRun *run);

/* What libvirt is to be asked for at a start: the limits of `policy` by the run's share. */
void bandwidth_limit(const JobRun *run, MigPolicy *policy);

/* Its goals were tuned: true, and the limits go to libvirt with the next step. False: it has no share. */
bool bandwidth_retune(JobRun *run);

void bandwidth_note_sample(JobRun *run, const MigSample *sample);

/* libvirt took the limits that were asked for, or not. */
void bandwidth_note_set(JobRun *run, const GError *error);

/* MaxBandwidth= may be another, or be there no more, or at last: also for what runs. */
void bandwidth_apply_config(Mover *mover);

/* Does what there is to do. To be called after whatever may have changed that, and some times a second. */
void bandwidth_step(Mover *mover);

/* For clients, to be freed: why no other migration could have a share; NULL: one could. */
char *bandwidth_explain_lack(const Mover *mover);
