/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All jobs of this agent: in memory, in the queue, on stable storage. Code that changes a job reports it here, and code that
 * follows changes (watchers, metrics, a drain) observes them here. Main thread only. */
#pragma once

#include "agent/config/config.h"
#include "agent/job/damaged.h"
#include "agent/job/historystore.h"
#include "agent/job/jobtable.h"
#include "agent/job/queue.h"
#include "agent/job/store.h"

typedef enum JobChange {
  JOB_CHANGE_ACCEPTED,  /* its record is on stable storage: new to everybody */
  JOB_CHANGE_PHASE,     /* it entered its present phase */
  JOB_CHANGE_FINISHED,  /* it is final; after PHASE, before STATE */
  JOB_CHANGE_LEASED,    /* its lease is ready, or not: see its failure */
  JOB_CHANGE_STATE,     /* what clients see has changed */
  JOB_CHANGE_OVER,      /* all have been told that it is final: its slot is free */
  JOB_CHANGE_NUMBERS,   /* only the numbers of its migration changed */
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
  HistoryStore *histories; /* owned by recorder.c; NULL: cannot be kept */
  Damaged *damaged;        /* unreadable records */
  unsigned starting;       /* calls that may become a job, waiting for libvirtd or the disk */
  bool store_failing;
  bool histories_failing;

  /* Private to jobs.c. */
  struct {
    JobObserverFunc func;
    gpointer user_data;
  } observers[JOB_OBSERVERS_MAX];
  unsigned n_observers;
} Jobs;

/* Registers an observer until the end of `jobs`. Observers are called in the order of registration. */
void jobs_observe(Jobs *jobs, JobObserverFunc func, gpointer user_data);

void jobs_tell(Jobs *jobs, Job *job, JobChange change);

/* Writes the job's record. `done` may be NULL; it is called as by store_write(). */
void jobs_save(Jobs *jobs, Job *job, StoreDoneFunc done, gpointer user_data);

/* Reports that a record could not be written, and schedules a retry. */
void jobs_note_save_failure(Jobs *jobs, const char *id, const GError *error);

/* Announces a change of state. */
Job *jobs_take_saved(Jobs *jobs, const char *id, const GError *error);

void jobs_announce(Jobs *jobs, Job *job);

/* The same, and also writes the record. */
void jobs_state_changed(Jobs *jobs, Job *job);

void jobs_enter_phase(Jobs *jobs, Job *job, MigPhase phase, const char *message);

/* Call a few times per second: retries failed writes, and forgets old jobs. */
void jobs_tick(Jobs *jobs);
