/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to agent/drain: the drain, its guests and its targets. Main thread only. */
#pragma once

#include "agent/drain/drain.h"
#include "agent/drain/drains.h"
#include "agent/libvirtd/local-call.h"
#include "agent/request/params.h"
#include "libmigrate/core/drain.h"

#define DRAIN_TARGETS_MAX 64

/* As in the interface's type DrainGuest. */
typedef enum DrainGuestState {
  DRAIN_GUEST_CHECKING,
  DRAIN_GUEST_WAITING,
  DRAIN_GUEST_MOVING,
  DRAIN_GUEST_MOVED,
  DRAIN_GUEST_CANNOT_MOVE,
  DRAIN_GUEST_LEFT,
  DRAIN_GUEST_GONE,
  DRAIN_GUEST_STATE_COUNT
} DrainGuestState;

/* As in the interface's type DrainStatus. */
typedef enum DrainState {
  DRAIN_CHECKING,
  DRAIN_MOVING,
  DRAIN_STOPPING,
  DRAIN_FINISHED,
  DRAIN_ABORTED,
  DRAIN_STATE_COUNT
} DrainState;

typedef struct DrainTarget {
  char *name; /* in the configuration, or NULL */
  char *uri;
  char *migrate_uri; /* or NULL */
  char *given_up;    /* why no more guests are sent there, or NULL */
  uint64_t free_bytes;
  unsigned sent;
  uint64_t away_until_ms; /* it did not answer, and is not asked again before then; 0: it answered */
} DrainTarget;

typedef struct DrainGuest {
  char uuid[MIG_UUID_STRING_SIZE];
  char *name;
  DrainGuestState state;
  char *message;     /* why, or NULL */
  uint64_t revision; /* the drain's revision at its last change */

  /* Its checks. */
  MigDrainFit *fits;   /* one per target */
  json_t **blockers;   /* likewise: the interface's []Finding, or NULL */
  bool *tried;         /* likewise: a migration there failed */
  unsigned asked;      /* checks in progress */
  GError *check_error; /* from these: this node's libvirtd failed, or its policy is gone */
  bool checked;        /* at least once */
  uint64_t due_ms;     /* not checked before */
  uint64_t failed_ms;  /* since when its checks have failed; 0: the last one did not */
  uint64_t gone_ms;    /* when it was found to be gone */
  uint64_t memory_bytes;
  Goals goals; /* resolved; the two pointers are NULL */
  char *policy_matched;
  MigProbe probe;
  bool measured; /* or the attempt failed */
  bool measuring;

  /* Its migrations. */
  char job_id[JOB_ID_SIZE]; /* the latest; "": none */
  unsigned tries;
  bool sending; /* its job is being written to stable storage, and clients do not see it before that */
} DrainGuest;

struct Drain {
  Drains *drains;
  char id[JOB_ID_SIZE];
  char *request_key;
  char *digest; /* of the request */
  char *by;
  Caller *caller;  /* NULL: accepted by an older agent */
  Caller *aborter; /* NULL: likewise, or not aborted */
  char *aborted_by;
  DrainState state;
  int64_t started_usec;
  int64_t finished_usec;
  GPtrArray *targets; /* DrainTarget */
  GoalsParam asked;

  GPtrArray *guests;    /* DrainGuest, in the order of discovery */
  GHashTable *by_uuid;  /* the same guests */
  json_t *final_guests; /* once it is over: all of them, as clients see them; `guests` is then empty */
  unsigned final_counts[DRAIN_GUEST_STATE_COUNT];
  uint64_t revision;
  uint64_t changed_ms; /* when a guest last changed its state */

  LocalCalls *local_calls;
  unsigned checks, measurements; /* in progress */
  bool listing, listed;
  uint64_t list_begun_ms;
  uint64_t list_due_ms;

  GPtrArray *watchers; /* of drain-calls.c */
  GSource *soon;       /* a pending step */
  bool stepping;
  bool closing;
};

/* --- drain.c --- */

Drain *drain_new(Drains *drains);
void drain_add_target(Drain *drain, const char *name, const char *uri, const char *migrate_uri);
DrainGuest *drain_find_guest(const Drain *drain, const char *uuid);
/* Finds the guest, or creates it. */
DrainGuest *drain_add_guest(Drain *drain, const char *uuid, const char *name);
/* Takes `message`, which may be NULL. */
void drain_set_guest(Drain *drain, DrainGuest *guest, DrainGuestState state, char *message);
const char *drain_target_label(const DrainTarget *target);
bool drain_is_over(const Drain *drain);
/* Its record is on stable storage, and drain_begin() was called. */
bool drain_has_begun(const Drain *drain);
/* Starts working, also after a restart. */
void drain_begin(Drain *drain);
void drain_step_soon(Drain *drain);
/* Is any guest still being checked, waiting or migrating? */
bool drain_has_unfinished(const Drain *drain);
/* Counts by state. */
void drain_count(const Drain *drain, unsigned *ret_counts);

/* --- drain-scout.c: questions to libvirtd, and their answers --- */

/* Asks what the drain needs to know, as far as there are threads. */
void drain_ask(Drain *drain);

/* --- drain-send.c: from a waiting guest to its job, and on from the end of the job --- */

/* The job of a guest that is migrating or being sent, or NULL. */
Job *drain_find_job(const Drain *drain, const DrainGuest *guest);
/* Decides what is next for the guest. */
void drain_note_job_over(Drain *drain, DrainGuest *guest, const Job *job);
/* Looks at the jobs of all guests that migrate. */
void drain_follow_jobs(Drain *drain);
/* Starts as many migrations as the limits allow. */
void drain_send(Drain *drain);
/* After a restart: takes over the jobs of this drain in whatever state they are. */
void drain_adopt_jobs(Drain *drain);
/* Aborts the jobs whose migration has not started. */
void drain_abort_jobs(Drain *drain);

/* --- drain-json.c --- */

json_t *drain_status_to_json(const Drain *drain);
/* Guests that changed after this revision. */
json_t *drain_guests_to_json(const Drain *drain, uint64_t after);
json_t *drain_to_record(const Drain *drain);
Drain *drain_from_record(Drains *drains, json_t *record, GError **error);

/* --- drain-calls.c --- */

void drain_save(Drain *drain);
/* Tells the watchers about the changes. */
void drain_flush(Drain *drain);
void drain_watchers_free(Drain *drain);
