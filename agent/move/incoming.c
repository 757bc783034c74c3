/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Domains that migrate to this node.
 *
 * Theory of Operation. A lease is an incoming job that waits: its record makes it survive the agent, its request key makes it
 * safe to request twice, and its end frees what was reserved. A migration that nobody announced gets such a job as well, when
 * libvirt reports its first copy.
 *
 * Nothing here controls a migration; the source does. This end only checks the domain: when libvirt reports a change, when it
 * answers again after a silence, and periodically, since an event may be lost. A check is a call (libvirtd/local-call.c), one at
 * a time per job; core/slot.c decides what follows. It is also told of events, for what came and went between two checks, and of
 * each gap in the watch: a failed check, a new connection. The watch is not kept in the record: a new process has not seen what
 * happened to the domain in the meantime. Phases: preparing while images are created, pending while nothing has arrived, then
 * migrating, recovering while the outcome is open, and the end. incoming-begin.c starts such a job. */
#include "agent/move/incoming-private.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/libvirtd/images.h"
#include "agent/move/finish.h"
#include "agent/move/lifecycle.h"

#include <string.h>

/* How soon to check again once libvirt said that the guest runs here: it only has to tidy up. */
#define RUNS_HERE_MS 100

IncomingBack *incoming_back_new(Mover *mover, const Job *job) {
  IncomingBack *back = g_new0(IncomingBack, 1);

  back->mover = mover;
  g_strlcpy(back->id, job->id, sizeof back->id);
  return back;
}

Job *incoming_back_find(const IncomingBack *back) {
  Job *job = back->mover->ending ? NULL : job_table_find_id(back->mover->jobs->table, back->id);

  return job && !job_is_final(job) ? job : NULL;
}

const char *incoming_name_source(const Job *job) {
  return job->lease->source ? job->lease->source : "a node that did not announce it";
}

unsigned incoming_count(const Mover *mover, uint64_t *ret_reserved_bytes) {
  const GPtrArray *all = job_table_all(mover->jobs->table);
  unsigned count = 0;

  *ret_reserved_bytes = 0;
  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    if (!job->lease || job_is_final(job))
      continue;
    count++;
    *ret_reserved_bytes += job->memory_bytes;
  }
  return count;
}

char *incoming_uri(const Mover *mover) {
  if (mover->config->incoming_uri)
    return g_strdup(mover->config->incoming_uri);
  return g_strdup_printf("qemu+tls://%s/system", mover->hostname);
}

/* --- phases --- */

/* libvirt prepares the target before it migrates: a job passes through that phase. */
void incoming_enter(Mover *mover, Job *job, MigPhase phase, const char *message) {
  if (job->phase == phase)
    return;
  if (job->phase == MIG_PHASE_PENDING && phase != MIG_PHASE_PREPARING)
    jobs_enter_phase(mover->jobs, job, MIG_PHASE_PREPARING, "libvirt is preparing for its arrival");
  if (job->phase == MIG_PHASE_PREPARING && phase == MIG_PHASE_RECOVERING)
    jobs_enter_phase(mover->jobs, job, MIG_PHASE_MIGRATING, "it is arriving");
  jobs_enter_phase(mover->jobs, job, phase, message);
}

static void note_coming(Mover *mover, Job *job, const char *why) {
  if (job->started_usec == 0) {
    job->started_usec = g_get_real_time();
    job->started_ms = clock_now_ms();
  }
  /* The released lease was about to end unused. */
  if (job->failure.cause == MIG_CAUSE_USER_ABORT) {
    job_clear_failure(job);
    job->abort_requested = false;
    job_add_event(job, "warning", MIG_CAUSE_NONE, "it arrived before its lease was released");
  }
  incoming_enter(mover, job, MIG_PHASE_MIGRATING, why);
  log_job(job, LOG_INFO, NAMES_MESSAGE_JOB_STARTED, "migrating here from %s", incoming_name_source(job));
}

static void note_stage(Job *job, MigStage stage) {
  if (job->stage == stage)
    return;
  job->stage = stage;
  job_add_event(job, "stage", MIG_CAUSE_NONE, "%s", mig_stage_name(stage));
}

/* --- the end --- */

static const struct {
  MigCause cause;
  MigPhase phase;
  JobWhere running_at;
  const char *message;
  const char *unwatched; /* the message after a gap in the watch; NULL: the same */
} ends[] = {
    [MIG_SLOT_OPEN] = {MIG_CAUSE_INTERNAL, MIG_PHASE_FAILED, JOB_AT_UNKNOWN, "it has not ended", NULL},
    [MIG_SLOT_ARRIVED] = {MIG_CAUSE_NONE, MIG_PHASE_SUCCEEDED, JOB_AT_TARGET, "", NULL},
    [MIG_SLOT_CANCELLED] = {MIG_CAUSE_CANCELLED_ELSEWHERE, MIG_PHASE_FAILED, JOB_AT_UNKNOWN,
                            "the source ended the migration, or lost it: the copy that had arrived here is "
                            "gone and never ran. The source's job says why",
                            NULL},
    [MIG_SLOT_GONE] = {MIG_CAUSE_NOT_WATCHED, MIG_PHASE_FAILED, JOB_AT_UNKNOWN,
                       "the copy that had arrived here is gone, and the agent did not watch without a gap: "
                       "the guest may have run here and been shut off. Before you start it anywhere, check "
                       "the source's job and the guest's log here (/var/log/libvirt/qemu)",
                       NULL},
    [MIG_SLOT_STOPPED] = {MIG_CAUSE_GUEST_STOPPED, MIG_PHASE_FAILED, JOB_AT_UNKNOWN,
                          "the guest arrived here and no longer runs: before you start it anywhere, check "
                          "its log here and its source",
                          NULL},
    [MIG_SLOT_TAKEN] =
        {MIG_CAUSE_DOMAIN_EXISTS_AT_TARGET, MIG_PHASE_FAILED, JOB_AT_TARGET,
         "a domain with this UUID was started here, not by a migration, so no migration of it can arrive. "
         "Before anything else, find out which copy is the guest",
         "a domain with this UUID is alive here, and the agent did not watch without a gap: it may have "
         "arrived by migration or been started here. Before anything else, find out which copy is the guest"},
    [MIG_SLOT_RELEASED] = {MIG_CAUSE_USER_ABORT, MIG_PHASE_ABORTED, JOB_AT_UNKNOWN, "its lease was released",
                           NULL},
    [MIG_SLOT_EXPIRED] = {MIG_CAUSE_LEASE_EXPIRED, MIG_PHASE_ABORTED, JOB_AT_UNKNOWN,
                          "nothing arrived before the lease expired: prepare it again, with a longer lease "
                          "if needed (LeaseTimeout=, timeout_s)",
                          "the lease expired, and the guest does not run here now. The agent did not watch "
                          "without a gap: the guest may have arrived, run and been shut off. Before you "
                          "start it anywhere, check the source's job"},
};
G_STATIC_ASSERT(G_N_ELEMENTS(ends) == MIG_SLOT_END_COUNT);

static void finish(Mover *mover, Job *job, MigSlotEnd end, const char *why) {
  MigPhase phase = ends[end].phase;
  bool hedged = !job->lease->slot.watched && ends[end].unwatched;

  if (phase == MIG_PHASE_SUCCEEDED && job->phase != MIG_PHASE_MIGRATING && job->phase != MIG_PHASE_RECOVERING)
    incoming_enter(mover, job, MIG_PHASE_MIGRATING, why);
  if (phase != MIG_PHASE_SUCCEEDED) {
    if (!job_note_failure(job, ends[end].cause, NULL, "%s", hedged ? ends[end].unwatched : ends[end].message))
      phase = finish_phase_of_cause(job->failure.cause);
  }
  finish_job(mover, job, phase, ends[end].running_at, g_strdup_printf("here: %s", why));
}

static void take_removed(Mover *mover, Job *job, const ImagesAnswer *answer, const GError *error) {
  MigSlotEnd end;

  job->lease->asking = false;
  job->lease->due_ms = clock_now_ms() + 1000;
  if (error || !answer->removed) {
    /* Not now; the next check will tell more. A thread may still be removing images, on outdated knowledge: call it off. */
    g_atomic_int_set(job->lease->called_off, 1);
    mig_slot_doubt(&job->lease->slot);
    if (error) {
      g_autofree char *text =
          g_strdup_printf("removes the images that were created for it, retrying: %s", error->message);

      job_set_next_action(job, text);
      jobs_announce(mover->jobs, job);
    }
    return;
  }
  incoming_take_image_states(job, answer);
  incoming_note_removed(job, answer);
  if (answer->have_status && answer->status.state != MIG_END_ABSENT &&
      answer->status.state != MIG_END_INACTIVE) {
    job_add_event(job, "warning", MIG_CAUSE_NONE,
                  "it arrived while its images were being removed: abort the migration at its source");
    log_job(job, LOG_CRIT, NAMES_MESSAGE_JOB_NEEDS_OPERATOR,
            "it arrived while its images were being removed: abort the migration at its source");
    jobs_state_changed(mover->jobs, job);
    incoming_ask(mover, job);
    return;
  }
  end = job->lease->slot.likely;
  /* An event arrived in the meantime. */
  if (end == MIG_SLOT_OPEN) {
    jobs_state_changed(mover->jobs, job);
    incoming_ask(mover, job);
    return;
  }
  finish(mover, job, end,
         end == MIG_SLOT_CANCELLED ? "the copy that had arrived is gone and never ran here"
                                   : "nothing arrived");
}

static void on_removed(gpointer task, const GError *error, gpointer user_data) {
  const ImagesAnswer *answer = task;
  g_autofree IncomingBack *back = user_data;
  Job *job = incoming_back_find(back);

  if (!job)
    return;
  take_removed(back->mover, job, answer, error);
  incoming_tell_waiters(back->mover, back->id);
}

/* --- waiting for a check --- */

typedef struct LookWaiter {
  IncomingSeenFunc seen;
  gpointer user_data;
  GDestroyNotify destroy;
} LookWaiter;

static void look_waiter_free(gpointer data) {
  LookWaiter *waiter = data;

  if (waiter->user_data)
    waiter->destroy(waiter->user_data);
  g_free(waiter);
}

/* A callback may wait again, even for this job. */
void incoming_tell_waiters(Mover *mover, const char *id) {
  Job *job = job_table_find_id(mover->jobs->table, id);
  g_autoptr(GPtrArray) waiters = NULL;

  if (!job || job->lease->look_waiters->len == 0)
    return;
  waiters = job->lease->look_waiters;
  job->lease->look_waiters = g_ptr_array_new_with_free_func(look_waiter_free);
  for (guint i = 0; i < waiters->len; i++) {
    LookWaiter *waiter = waiters->pdata[i];

    waiter->seen(g_steal_pointer(&waiter->user_data));
  }
}

void incoming_look(Mover *mover, Job *job, IncomingSeenFunc seen, gpointer user_data,
                   GDestroyNotify destroy) {
  LookWaiter *waiter = g_new0(LookWaiter, 1);

  *waiter = (LookWaiter){seen, user_data, destroy};
  g_ptr_array_set_free_func(job->lease->look_waiters, look_waiter_free);
  g_ptr_array_add(job->lease->look_waiters, waiter);
  if (job->durable)
    incoming_ask(mover, job);
}

/* --- checks --- */

typedef struct Look {
  char uuid[MIG_UUID_STRING_SIZE];
  MigDomainStatus status;
  bool unbroken; /* the event connection stayed up during the check */
  bool have_final;
  MigFinalStats final;
} Look;

static bool run_look(MigDriver *driver, MigConn *conn, gpointer task, GError **error) {
  Look *look = task;

  if (!driver->ops->domain_status(conn, look->uuid, &look->status, error))
    return false;
  if ((look->status.state == MIG_END_RUNNING || look->status.state == MIG_END_PAUSED) &&
      !look->status.job_active)
    look->have_final = driver->ops->final_stats(conn, look->uuid, &look->final, NULL);
  look->unbroken = driver->ops->is_alive(conn);
  return true;
}

/* The statistics as far as this end knows them. */
static void take_final(Job *job, const Look *look) {
  JobResult *result = &job->result;
  bool post_copy = job->stage == MIG_STAGE_POST_COPY || job->times.spent_ms[JOB_PART_POST_COPY] > 0;

  if (look->have_final) {
    result->have_libvirt_time = look->final.total_time_ms > 0;
    result->libvirt_time_ms = look->final.total_time_ms;
    result->have_transferred = look->final.transferred_bytes > 0;
    result->transferred_bytes = look->final.transferred_bytes;
    result->have_downtime = result->have_libvirt_downtime = look->final.have_downtime && !post_copy;
    result->downtime_ms = result->libvirt_downtime_ms = result->have_downtime ? look->final.downtime_ms : 0;
  }
  if (!result->have_downtime)
    result->downtime_unknown = "only the source's agent hears when the guest stops";
}

/* The guest runs here: in post-copy for the first time, otherwise with all of its memory. */
static void note_runs_here(Job *job, const MigVirtEvent *event) {
  JobPart part = event->state == MIG_END_RUNNING_POSTCOPY ? JOB_PART_POST_COPY : JOB_PART_SETTLE;

  if (event->kind == MIG_VIRT_EVENT_STATE && job->phase == MIG_PHASE_MIGRATING && part > job->times.part &&
      (event->state == MIG_END_RUNNING || event->state == MIG_END_RUNNING_POSTCOPY))
    job_times_enter(&job->times, part, event->at_ms);
}

static void follow(Mover *mover, Job *job, const MigSlotAnswer *answer) {
  bool comes = answer->phase == MIG_PHASE_MIGRATING && job->phase != MIG_PHASE_MIGRATING;
  MigPhase before = job->phase;
  uint64_t revision = job->revision;

  job_set_evidence(job, answer->why);
  if (comes && before != MIG_PHASE_RECOVERING)
    note_coming(mover, job, answer->why);
  else
    incoming_enter(mover, job, answer->phase, answer->why);
  note_stage(job, answer->stage);
  job->lease->due_ms =
      clock_now_ms() + (job->times.part == JOB_PART_SETTLE ? RUNS_HERE_MS : answer->again_ms);
  if (job->revision != revision)
    jobs_state_changed(mover->jobs, job);
}

/* Reported once: it means the same however often it happens. */
static void note_gap(Job *job, const char *why) {
  job_add_event(job, "warning", MIG_CAUSE_NONE, "there was a gap in watching it: %s", why);
}

static void apply(Mover *mover, Job *job, const Look *look) {
  JobLease *lease = job->lease;
  bool lost = (!look || !look->unbroken) && mig_slot_gap(&lease->slot);
  const MigSlotLook seen = {
      .now_ms = clock_now_ms(),
      .state = look ? look->status.state : MIG_END_UNKNOWN,
      .job_incoming = look && look->status.job_active && !look->status.job_outgoing,
      .job_outgoing = look && look->status.job_outgoing,
      .migrated = look && look->status.migrated,
      .booted = look && look->status.booted,
      .persistent = look && look->status.persistent,
      .images = job_lease_count_images(lease, JOB_IMAGE_MADE) > 0,
  };
  MigSlotAnswer answer = mig_slot_step(&lease->slot, &seen);

  if (lost) {
    note_gap(job, look ? "the connection to libvirtd broke" : "libvirtd did not answer");
    jobs_state_changed(mover->jobs, job);
  }
  if (answer.end == MIG_SLOT_OPEN) {
    follow(mover, job, &answer);
    return;
  }
  if (answer.nothing && seen.images && !answer.keep) {
    lease->asking = true;
    g_atomic_rc_box_release(lease->called_off);
    lease->called_off = g_atomic_rc_box_new0(gint);
    images_remove(mover->local_calls, lease, job->domain_uuid,
                  hypervisor_get_state(mover->hypervisor)->serial, on_removed, incoming_back_new(mover, job));
    return;
  }
  if (answer.end == MIG_SLOT_ARRIVED)
    take_final(job, look);
  else
    incoming_leave_images(job, answer.keep ? answer.keep : "the domain is alive here");
  finish(mover, job, answer.end, answer.why);
}

static void on_look(gpointer task, const GError *error, gpointer user_data) {
  g_autofree IncomingBack *back = user_data;
  Job *job = incoming_back_find(back);
  bool again;

  if (!job)
    return;
  again = job->lease->asked_for_again;
  job->lease->asking = job->lease->asked_for_again = false;
  /* Something happened during the check: its result is outdated. */
  if (again) {
    incoming_ask(back->mover, job);
    return;
  }
  apply(back->mover, job, task);
  if (!job_is_final(job) && job->lease->asking)
    return; /* images are being removed; that will end the job */
  incoming_tell_waiters(back->mover, back->id);
}

void incoming_ask(Mover *mover, Job *job) {
  Look *look;
  LocalCall call = {.run = run_look, .free_task = g_free};

  if (job->lease->asking) {
    job->lease->asked_for_again = true;
    return;
  }
  look = g_new0(Look, 1);
  g_strlcpy(look->uuid, job->domain_uuid, sizeof look->uuid);
  call.task = look;
  job->lease->asking = true;
  job->lease->due_ms = 0;
  local_calls_run(mover->local_calls, &call, on_look, incoming_back_new(mover, job));
}

/* --- what drives the job --- */

void incoming_handle_event(Mover *mover, Job *job, const MigVirtEvent *event) {
  const MigSlotNews news = {
      .state = event->kind == MIG_VIRT_EVENT_STATE ? event->state : MIG_END_UNKNOWN,
      .arriving = event->kind == MIG_VIRT_EVENT_STATE && event->arriving,
      .started = event->kind == MIG_VIRT_EVENT_STATE && event->started,
      .definition = event->kind == MIG_VIRT_EVENT_DEFINITION,
  };

  if (job) {
    bool heard = mig_slot_hear(&job->lease->slot, &news);

    note_runs_here(job, event);

    /* A later verdict may rest on this event; a removal in progress no longer has a basis. */
    if (heard || (event->kind == MIG_VIRT_EVENT_STATE && event->state != MIG_END_INACTIVE))
      g_atomic_int_set(job->lease->called_off, 1);
    if (heard && job->durable)
      jobs_save(mover->jobs, job, NULL, NULL);
    if (job->durable)
      incoming_ask(mover, job);
  } else if (event->kind == MIG_VIRT_EVENT_STATE && event->arriving) {
    incoming_begin(mover, event);
  }
}

void incoming_look_at_all(Mover *mover) {
  const GPtrArray *all = job_table_all(mover->jobs->table);

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (job->lease && job->durable && !job_is_final(job) && job->lease->due_ms > 0)
      job->lease->due_ms = clock_now_ms();
  }
}

void incoming_lose_sight(Mover *mover, const char *why) {
  const GPtrArray *all = job_table_all(mover->jobs->table);

  for (guint i = 0; i < all->len; i++) {
    Job *job = all->pdata[i];

    if (!job->lease || job_is_final(job) || !mig_slot_gap(&job->lease->slot))
      continue;
    g_atomic_int_set(job->lease->called_off, 1);
    note_gap(job, why ? why : "the connection to libvirtd was re-established");
    if (job->durable)
      jobs_state_changed(mover->jobs, job);
  }
}

bool incoming_release(Mover *mover, Job *job, const Caller *caller) {
  g_autofree char *who = caller_describe(caller);

  if (!mig_slot_release(&job->lease->slot))
    return false;
  if (job->abort_requested)
    return true;
  job->abort_requested = true;
  job_add_event(job, "abort_requested", MIG_CAUSE_USER_ABORT, "released by %s", who);
  log_job_by(job, caller, LOG_NOTICE, NAMES_MESSAGE_JOB_ABORT_REQUESTED, "lease released by %s", who);
  job_note_failure(job, MIG_CAUSE_USER_ABORT, NULL, "lease released by %s", who);
  if (job->lease->due_ms > 0)
    job->lease->due_ms = clock_now_ms();
  jobs_announce(mover->jobs, job);
  return true;
}

/* If the time of day was set or the node rebooted, it differs from what clients were told. */
static void correct_expiry(Job *job) {
  int64_t left_ms = (int64_t)(job->pending_since_ms + job->lease->timeout_ms) - (int64_t)clock_now_ms();
  int64_t expires_usec = g_get_real_time() + left_ms * 1000;

  if (ABS(expires_usec - job->lease->expires_usec) > G_USEC_PER_SEC)
    job->lease->expires_usec = expires_usec;
}

void incoming_adopt(Mover *mover, Job *job) {
  correct_expiry(job);
  job_add_event(job, "agent_restarted", MIG_CAUSE_NONE, "the agent was restarted; checking the domain here");
  if (!job->lease->slot.came && !job->lease->slot.ran && job->lease->slot.ending == MIG_SLOT_OPEN)
    incoming_make_images(mover, job, incoming_back_new(mover, job));
  else
    job->lease->due_ms = clock_now_ms();
}

void incoming_tick(Mover *mover, Job *job, uint64_t now_ms) {
  JobLease *lease = job->lease;

  if (!job->durable || lease->asking)
    return;
  if (lease->leased && mig_slot_expire(&lease->slot, now_ms, job->pending_since_ms + lease->timeout_ms)) {
    job_add_event(job, "decision", MIG_CAUSE_LEASE_EXPIRED, "the lease expired");
    jobs_state_changed(mover->jobs, job);
    lease->due_ms = now_ms;
  }
  if (lease->due_ms > 0 && now_ms >= lease->due_ms)
    incoming_ask(mover, job);
}
