/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Private to agent/drain-*.c: the drain, its guests and its targets. All of it is the main thread's. */
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
  char *name; /* of the configuration, or NULL */
  char *uri;
  char *migrate_uri; /* or NULL */
  char *given_up;    /* why nobody is sent there any more, or NULL */
  uint64_t free_bytes;
  unsigned sent;
  uint64_t away_until_ms; /* it did not answer, and is not asked again before; 0: it did */
} DrainTarget;

typedef struct DrainGuest {
  char uuid[MIG_UUID_STRING_SIZE];
  char *name;
  DrainGuestState state;
  char *message;     /* why, or NULL */
  uint64_t revision; /* of the drain, when it changed last */

  /* Of its checks. */
  MigDrainFit *fits;   /* one for each target */
  json_t **blockers;   /* likewise: the interface's []Finding, or NULL */
  bool *tried;         /* likewise: a move there came to nothing */
  unsigned asked;      /* checks that are under way */
  GError *check_error; /* of these: its libvirtd cannot tell of it */
  bool checked;        /* answered once */
  uint64_t due_ms;     /* it is checked not before */
  uint64_t failed_ms;  /* since when this node's libvirtd cannot tell of it; 0: it could */
  uint64_t gone_ms;    /* when it was seen to be gone */
  uint64_t memory_bytes;
  Goals goals; /* resolved, but for the two pointers */
  char *policy_matched;
  MigProbe probe;
  bool measured; /* or tried to be */
  bool measuring;

  /* Of its moves. */
  char job_id[JOB_ID_SIZE]; /* the newest; "": none */
  unsigned tries;
  bool sending; /* its job is on the way to stable storage: nobody is told of it before it is there */
} DrainGuest;

struct Drain {
  Drains *drains;
  char id[JOB_ID_SIZE];
  char *request_key;
  char *digest; /* of what was asked for */
  char *by;
  Caller *caller;  /* NULL: an older agent took it */
  Caller *aborter; /* NULL: the same, or nobody */
  char *aborted_by;
  DrainState state;
  int64_t started_usec;
  int64_t finished_usec;
  GPtrArray *targets; /* DrainTarget */
  GoalsParam asked;

  GPtrArray *guests;    /* DrainGuest, in the order in which they were found */
  GHashTable *by_uuid;  /* of the same */
  json_t *final_guests; /* once it is over: all of them, as clients see them, and no guests any more */
  unsigned final_counts[DRAIN_GUEST_STATE_COUNT];
  uint64_t revision;
  uint64_t changed_ms; /* when a guest's state changed last */

  LocalCalls *local_calls;
  unsigned checks, measurements; /* under way */
  bool listing, listed;
  uint64_t list_begun_ms;
  uint64_t list_due_ms;

  GPtrArray *watchers; /* of drain-calls.c */
  GSource *soon;       /* a step is to be made */
  bool stepping;
  bool closing;
};

/* --- drain.c --- */

Drain *drain_new(Drains *drains);
void drain_add_target(Drain *drain, const char *name, const char *uri, const char *migrate_uri);
DrainGuest *drain_find_guest(const Drain *drain, const char *uuid);
/* The one that is there, or a new one. */
DrainGuest *drain_add_guest(Drain *drain, const char *uuid, const char *name);
/* Takes `message`, which may be NULL. */
void drain_set_guest(Drain *drain, DrainGuest *guest, DrainGuestState state, char *message);
const char *drain_target_label(const DrainTarget *target);
bool drain_is_over(const Drain *drain);
/* Its record is on stable storage. */
bool drain_has_begun(const Drain *drain);
/* Begins, or goes on after a restart. */
void drain_begin(Drain *drain);
void drain_step(Drain *drain);
void drain_step_soon(Drain *drain);
/* Some are not in a state that stays. */
bool drain_has_unfinished(const Drain *drain);
/* Counts by state. */
void drain_count(const Drain *drain, unsigned *ret_counts);

/* --- drain-scout.c: what is asked, and what comes of it --- */

/* Asks whatever there is to ask, as far as there are threads for it. */
void drain_ask(Drain *drain);

/* --- drain-send.c: from a guest that waits to its job, and what follows when that is over --- */

/* The job of a guest that moves or is being sent, or NULL. */
Job *drain_find_job(const Drain *drain, const DrainGuest *guest);
/* What follows of it for the guest. */
void drain_note_job_over(Drain *drain, DrainGuest *guest, const Job *job);
/* Looks at all guests that move. */
void drain_follow_jobs(Drain *drain);
/* Starts what may be started. */
void drain_send(Drain *drain);
/* After a restart: takes the jobs of this drain as they are. */
void drain_adopt_jobs(Drain *drain);
/* Ends those jobs of which nothing was moved yet. */
void drain_abort_jobs(Drain *drain);

/* --- drain-json.c --- */

json_t *drain_status_to_json(const Drain *drain);
/* Those that changed after this revision. */
json_t *drain_guests_to_json(const Drain *drain, uint64_t after);
json_t *drain_to_record(const Drain *drain);
Drain *drain_from_record(Drains *drains, json_t *record, GError **error);

/* --- drain-calls.c --- */

void drain_save(Drain *drain);
/* Tells the watchers what has changed. */
void drain_flush(Drain *drain);
void drain_watchers_free(Drain *drain);
