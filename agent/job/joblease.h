/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an incoming job has that others have not: the place that is held for it, and the images made for it. Plain state. */
#pragma once

#include "libmigrate/core/slot.h"
#include "libmigrate/virt/driver.h"

#include <glib.h>
#include <jansson.h>

struct Job;

typedef enum JobImageState {
  JOB_IMAGE_PLANNED, /* on record before it is made */
  JOB_IMAGE_MADE,    /* by this agent, for this job: nothing else was there under its name */
  JOB_IMAGE_REMOVED,
  JOB_IMAGE_LEFT, /* it may be somebody else's, or the guest's, or could not be removed: nobody touches it any more */
  JOB_IMAGE_STATE_COUNT
} JobImageState;

typedef struct JobImage {
  char *disk;   /* "vda" */
  char *path;   /* as the domain has it */
  char *pool;   /* or NULL: the one at the path's directory */
  char *volume; /* with `pool` */
  char *format;
  uint64_t capacity_bytes;
  JobImageState state;
  MigImageStamp stamp; /* MADE: how it was then */
} JobImage;

typedef struct JobLease {
  char *source;         /* where it is to come from, as Prepare was told; NULL: nobody said */
  bool leased;          /* by Prepare. Else it came unannounced */
  uint64_t timeout_ms;  /* so long after job->pending_since_ms it expires, if nothing has come */
  int64_t expires_usec; /* realtime: the same, as callers were told */
  MigSlot slot;
  GPtrArray *images; /* JobImage */

  /* Of this process only. */
  GPtrArray *waiting;      /* VarlinkCall: to be told of the lease once its images are made */
  GPtrArray *look_waiters; /* of incoming.c: to be told once it has been looked at */
  gint *called_off; /* atomic, counted: images that are being removed must stay, for something was heard of */
  bool asking;      /* a call is under way */
  bool asked_for_again; /* something happened meanwhile */
  uint64_t due_ms;      /* when to look next, monotonic */
} JobLease;

JobLease *job_lease_new(void);
void job_lease_free(JobLease *lease);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JobLease, job_lease_free)

/* Takes nothing: strings are copied. */
void job_lease_add_image(JobLease *lease, const char *disk, const MigImage *image);

unsigned job_lease_count_images(const JobLease *lease, JobImageState state);

/* As the driver wants it; borrows. */
MigImage job_image_get(const JobImage *image);

/* The interface's type Lease. `job` has a lease. */
json_t *job_lease_to_json(const struct Job *job);

/* What its record has besides. */
json_t *job_lease_to_record(const JobLease *lease);
JobLease *job_lease_from_record(json_t *object);
