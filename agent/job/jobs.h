/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All jobs of this agent: in memory, in the queue, on stable storage. Whoever changes one says so here, and whoever follows
 * changes (watchers, metrics, a drain) observes them here. Main thread only. */
#pragma once

#include "agent/config/config.h"
#include "agent/job/damaged.h"
#include "agent/job/historystore.h"
#include "agent/job/jobtable.h"
#include "agent/job/queue.h"
#include "agent/job/store.h"

typedef enum JobChange {
  JOB_CHANGE_ACCEPTED,  /* its record is on stable storage: it was not known before */
  JOB_CHANGE_PHASE,     /* it has entered the phase that it is in now */
  JOB_CHANGE_FINISHED,  /* it is final; comes after the phase, and before the state */
  JOB_CHANGE_LEASED,    /* its lease can be used, or cannot be: look at its failure */
  JOB_CHANGE_STATE,     /* what a client sees has changed */
  JOB_CHANGE_OVER,      /* everybody has been told that it is final: its place is free */
  JOB_CHANGE_NUMBERS,   /* only the numbers of its migration have */
  JOB_CHANGE_FORGOTTEN, /* it is about to be freed */
} JobChange;

typedef void (*JobObserverFunc)(Job *job, JobChange change, gpointer user_data);

#define JOB_OBSERVERS_MAX 8

typedef struct Jobs {
  const Config *config;
  GMainContext *context;
  char *boot_id;
  JobTable *table;
  JobQueue *queue;
  Store *store;
  HistoryStore *histories; /* of recorder.c; NULL: they cannot be kept */
  Damaged *damaged;        /* records that could not be read */
  unsigned starting;       /* calls that may become a job, and wait for libvirtd or the disk */
  bool store_failing;
  bool histories_failing;

  /* Private to jobs.c. */
  struct {
    JobObserverFunc func;
    gpointer user_data;
  } observers[JOB_OBSERVERS_MAX];
  unsigned n_observers;
} Jobs;

/* From now on until the end of `jobs`, in the order in which they came. */
void jobs_observe(Jobs *jobs, JobObserverFunc func, gpointer user_data);

void jobs_tell(Jobs *jobs, Job *job, JobChange change);

/* Writes the job's record. `done` may be NULL; it is called as of store_write(). */
void jobs_save(Jobs *jobs, Job *job, StoreDoneFunc done, gpointer user_data);

/* A record could not be written: says so, and tries again later. */
void jobs_note_save_failure(Jobs *jobs, const char *id, const GError *error);

/* Tells of a change of state. */
void jobs_announce(Jobs *jobs, Job *job);

/* The same, and puts it on stable storage. */
void jobs_state_changed(Jobs *jobs, Job *job);

void jobs_enter_phase(Jobs *jobs, Job *job, MigPhase phase, const char *message);

/* Some times a second: writes again what could not be written, and forgets old jobs. */
void jobs_tick(Jobs *jobs);
