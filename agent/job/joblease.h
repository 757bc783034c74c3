/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What only an incoming job has: the room reserved for it, and the images made for it. Plain state. */
#pragma once

#include "libmigrate/core/slot.h"
#include "libmigrate/virt/driver.h"
#include "proto/json.h"

#include <glib.h>

struct Job;

typedef enum JobImageState {
  JOB_IMAGE_PLANNED, /* recorded before it is made */
  JOB_IMAGE_MADE,    /* by this agent for this job; its name was free */
  JOB_IMAGE_REMOVED,
  JOB_IMAGE_LEFT, /* maybe somebody else's, or in use, or not removable: never touched again */
  JOB_IMAGE_STATE_COUNT
} JobImageState;

typedef struct JobImage {
  char *disk;   /* "vda" */
  char *path;   /* as in the domain's definition */
  char *pool;   /* NULL: the pool of the path's directory */
  char *volume; /* in `pool` */
  char *format;
  uint64_t capacity_bytes;
  JobImageState state;
  MigImageStamp stamp; /* MADE: its state when it was made */
} JobImage;

typedef struct JobLease {
  char *source;         /* where it comes from, as given to Prepare; NULL: not given */
  bool leased;          /* by Prepare; else it came unannounced */
  uint64_t timeout_ms;  /* expires this long after job->pending_since_ms if nothing came */
  int64_t expires_usec; /* realtime: the same, as told to callers */
  MigSlot slot;
  GPtrArray *images; /* JobImage */

  /* Of this process only. */
  GPtrArray *waiting;      /* VarlinkCall: waiting for the lease's images */
  GPtrArray *look_waiters; /* of move/incoming.c: waiting for the next look */
  gint *called_off;        /* atomic, refcounted: keep images being removed, the domain showed up */
  bool asking;             /* a call is in progress */
  bool asked_for_again;    /* something happened meanwhile */
  uint64_t due_ms;         /* next look, monotonic */
} JobLease;

JobLease *job_lease_new(void);
void job_lease_free(JobLease *lease);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JobLease, job_lease_free)

/* Copies the strings. */
void job_lease_add_image(JobLease *lease, const char *disk, const MigImage *image);

unsigned job_lease_count_images(const JobLease *lease, JobImageState state);

/* As the driver expects it; borrows. */
MigImage job_image_get(const JobImage *image);

/* The interface's type Lease. `job` must have a lease. */
json_t *job_lease_to_json(const struct Job *job);

/* The additional part in its record. */
json_t *job_lease_to_record(const JobLease *lease);
JobLease *job_lease_from_record(json_t *object);
