/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How much of MaxBandwidth= each running migration may use: core/shares.h with jobs as members. */
#pragma once

#include "agent/move/mover.h"
#include "agent/move/run.h"
#include "libmigrate/core/shares.h"

/* Of a run; zero-initialized. */
typedef struct BandwidthMember {
  MigShare share;
  bool in;
  bool seen;         /* its stream is running: the start no longer overwrites limits */
  bool refused;      /* reported once, until libvirt accepts it */
  bool was_held_up;  /* by an interruption, after which a limit may no longer hold */
  uint64_t since_ms; /* waiting to start */
  uint64_t again_ms; /* next attempt after a refusal */
  uint64_t dirty;    /* dirty rate of its guest in bytes/s; 0: unknown */
} BandwidthMember;

Bandwidth *bandwidth_new(const Config *config);
void bandwidth_free(Bandwidth *bandwidth);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Bandwidth, bandwidth_free)

/* The job's checks have passed; `disks` is the number of its local disks. run_begin() follows: at once without MaxBandwidth=,
 * otherwise when its share is free. */
void bandwidth_join(JobRun *run, unsigned disks);

/* It has been migrating since before this process started, and may be using all the bandwidth. */
void bandwidth_adopt(JobRun *run);

/* It has ended. The next bandwidth_step() gives its share to others. */
void bandwidth_leave(JobRun *run);

/* Is it waiting for a share, not started yet? */
bool bandwidth_waits(const JobRun *run);

/* For the start: lowers the limits in `policy` to the run's share. */
void bandwidth_limit(const JobRun *run, MigPolicy *policy);

/* Its goals were tuned. True: sends the limits to libvirt. False: it has no share. */
bool bandwidth_retune(JobRun *run);

void bandwidth_note_sample(JobRun *run, const MigSample *sample);

/* libvirt has accepted the requested limits, or refused with `error`. */
void bandwidth_note_set(JobRun *run, const GError *error);

/* MaxBandwidth= may have been changed, removed or added: applies it, also to what is running. */
void bandwidth_apply_config(Mover *mover);

/* Carries out what is due. Call it after anything that may change that, and several times a second. */
void bandwidth_step(Mover *mover);

/* For clients: why no further migration could get a share; NULL: one could. The caller's. */
char *bandwidth_explain_lack(const Mover *mover);
