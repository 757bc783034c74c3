/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A drain's jobs: which guest is sent where now, and what follows when its job is over. */
#include "agent/drain/drain-private.h"

#include "agent/base/clock.h"
#include "agent/job/log.h"
#include "agent/move/lifecycle.h"
#include "agent/move/link.h"

#include <string.h>

/* The time until the next check after a problem of this node. */
#define AGAIN_MS 2000

#define NO_TARGET SIZE_MAX

static size_t target_of(const Drain *drain, const Job *job) {
  for (guint i = 0; i < drain->targets->len; i++)
    if (strcmp(((const DrainTarget *)drain->targets->pdata[i])->uri, job->target_uri) == 0)
      return i;
  return NO_TARGET;
}

Job *drain_find_job(const Drain *drain, const DrainGuest *guest) {
  return guest->state == DRAIN_GUEST_MOVING || guest->sending
             ? job_table_find_id(drain->drains->jobs->table, guest->job_id)
             : NULL;
}

/* --- what follows --- */

static void leave(Drain *drain, DrainGuest *guest, char *message) {
  const LogField fields[] = {{NAMES_FIELD_DRAIN_ID, drain->id},
                             {NAMES_FIELD_DOMAIN_NAME, guest->name},
                             {NAMES_FIELD_DOMAIN_UUID, guest->uuid},
                             {NAMES_FIELD_JOB_ID, guest->job_id}};

  drain_set_guest(drain, guest, DRAIN_GUEST_LEFT, message);
  log_message(LOG_WARNING, NAMES_MESSAGE_DRAIN_GUEST_STAYS, fields, G_N_ELEMENTS(fields),
              "%s stays on this node: %s", guest->name, guest->message);
}

static char *describe_failure(const Job *job) {
  return g_strdup_printf("%s: %s", mig_cause_name(job->failure.cause),
                         job->failure.message ? job->failure.message
                                              : mig_cause_describe(job->failure.cause));
}

static void give_up_target(Drain *drain, size_t index, const char *why) {
  DrainTarget *target = drain->targets->pdata[index];

  if (target->given_up)
    return;
  target->given_up = g_strdup(why);
  for (guint i = 0; i < drain->guests->len; i++) {
    DrainGuest *guest = drain->guests->pdata[i];

    guest->fits[index] = MIG_DRAIN_FIT_NO;
    if (guest->state == DRAIN_GUEST_WAITING && !guest->sending &&
        mig_drain_is_stuck(guest->fits, drain->targets->len))
      leave(drain, guest, g_strdup_printf("%s: %s", drain_target_label(target), why));
  }
}

/* The last check may be outdated by now. */
static void check_again(Drain *drain, DrainGuest *guest, char *message, uint64_t after_ms) {
  guest->due_ms = clock_now_ms() + after_ms;
  drain_set_guest(drain, guest, DRAIN_GUEST_CHECKING, message);
}

void drain_note_job_over(Drain *drain, DrainGuest *guest, const Job *job) {
  bool runs_here = job->result.running_at == JOB_AT_SOURCE;
  size_t target = target_of(drain, job);
  MigDrainNext next;

  if (job->direction == MIG_DIRECTION_INCOMING) {
    check_again(drain, guest, NULL, 0);
    return;
  }
  guest->tries++;
  next = mig_drain_next(job->phase, job->failure.cause, runs_here, guest->tries);
  if (target != NO_TARGET && next == MIG_DRAIN_NEXT_ELSEWHERE)
    guest->tried[target] = true;
  if (target != NO_TARGET && next != MIG_DRAIN_NEXT_MOVED && mig_drain_gives_up_target(job->failure.cause)) {
    g_autofree char *why = describe_failure(job);

    give_up_target(drain, target, why);
  }
  switch (next) {
  case MIG_DRAIN_NEXT_MOVED:
    drain_set_guest(drain, guest, DRAIN_GUEST_MOVED, NULL);
    break;
  case MIG_DRAIN_NEXT_GONE:
    guest->gone_ms = clock_now_ms();
    drain_set_guest(drain, guest, DRAIN_GUEST_GONE, describe_failure(job));
    break;
  case MIG_DRAIN_NEXT_AGAIN:
    check_again(drain, guest, describe_failure(job), AGAIN_MS);
    break;
  case MIG_DRAIN_NEXT_ELSEWHERE:
    check_again(drain, guest, describe_failure(job), 0);
    break;
  case MIG_DRAIN_NEXT_STAY:
  case MIG_DRAIN_NEXT_COUNT:
    leave(drain, guest, describe_failure(job));
    break;
  }
}

/* A job that somebody else started for the domain serves the drain as well. */
static void follow_foreign_job(Drain *drain, DrainGuest *guest) {
  const Job *job = job_table_find_active(drain->drains->jobs->table, guest->uuid);

  if (!job)
    return;
  g_strlcpy(guest->job_id, job->id, sizeof guest->job_id);
  guest->checked = true;
  drain_set_guest(drain, guest, DRAIN_GUEST_MOVING, NULL);
}

void drain_follow_jobs(Drain *drain) {
  for (guint i = 0; i < drain->guests->len; i++) {
    DrainGuest *guest = drain->guests->pdata[i];
    const Job *job;

    if (guest->state == DRAIN_GUEST_CHECKING || (guest->state == DRAIN_GUEST_WAITING && !guest->sending))
      follow_foreign_job(drain, guest);
    if (guest->state != DRAIN_GUEST_MOVING)
      continue;
    job = job_table_find_id(drain->drains->jobs->table, guest->job_id);
    if (!job)
      leave(drain, guest,
            g_strdup("the outcome of its migration is unknown: its job is no longer kept (KeepFinished=)"));
    else if (job_is_final(job))
      drain_note_job_over(drain, guest, job);
  }
}

/* --- the next guests to send --- */

/* How much of the limits the drain's jobs use. */
typedef struct Load {
  unsigned running;     /* or waiting for nothing but their turn */
  unsigned *to_targets; /* likewise, per target */
  bool *held;           /* the queue holds all jobs to it */
} Load;

static void weigh(const Drain *drain, Load *load) {
  JobQueue *queue = drain->drains->jobs->queue;

  for (guint i = 0; i < drain->guests->len; i++) {
    const DrainGuest *guest = drain->guests->pdata[i];
    const Job *job = drain_find_job(drain, guest);
    size_t target = job ? target_of(drain, job) : NO_TARGET;

    if (!job || job_is_final(job))
      continue;
    switch (job->phase == MIG_PHASE_PENDING && job->durable ? job_queue_held(queue, job) : MIG_HOLD_NONE) {
    case MIG_HOLD_JOB:
      break;
    case MIG_HOLD_TARGET:
      if (target != NO_TARGET)
        load->held[target] = true;
      break;
    default:
      load->running++;
      if (target != NO_TARGET)
        load->to_targets[target]++;
    }
  }
}

static void fill_targets(const Drain *drain, const Load *load, MigDrainTarget *ret_targets) {
  for (guint i = 0; i < drain->targets->len; i++) {
    const DrainTarget *target = drain->targets->pdata[i];
    unsigned limit = job_queue_limit_of_target(drain->drains->jobs->queue, target->uri);

    if (limit == 0)
      limit = UINT_MAX;
    ret_targets[i] = (MigDrainTarget){.places = limit - MIN(limit, load->to_targets[i]),
                                      .held = load->held[i],
                                      .free_bytes = target->free_bytes,
                                      .sent = target->sent};
  }
}

/* The fastest of the links to the targets, so that all guests are compared by the same link. */
static MigLinkFacts best_link(const Drain *drain) {
  MigLinkFacts best = {0};

  for (guint i = 0; i < drain->targets->len; i++) {
    const DrainTarget *target = drain->targets->pdata[i];
    MigLinkFacts link;

    link_recall(drain->drains->mover, target->uri, &link);
    if (link.bandwidth_bytes_per_s > best.bandwidth_bytes_per_s)
      best = link;
  }
  return best;
}

static void fill_guests(const Drain *drain, MigDrainGuest *ret_guests) {
  const MigLinkFacts link = best_link(drain);

  for (guint i = 0; i < drain->guests->len; i++) {
    const DrainGuest *guest = drain->guests->pdata[i];
    bool waits = guest->state == DRAIN_GUEST_WAITING && !guest->sending;

    ret_guests[i] = (MigDrainGuest){
        .waits = waits,
        .priority = (MigPriority)mig_policy_get(&guest->goals.policy, MIG_POLICY_PRIORITY),
        .expected_ms =
            waits ? mig_drain_expected_ms(&guest->probe, guest->memory_bytes, &link, &guest->goals.policy)
                  : 0,
        .memory_bytes = guest->memory_bytes,
        .fits = guest->fits,
    };
  }
}

static void on_accepted(Job *job, const GError *error, gpointer user_data) {
  const Drains *drains = user_data;
  Drain *drain = drains->drain;
  DrainGuest *guest = drain ? drain_find_guest(drain, job->domain_uuid) : NULL;

  if (!guest || !guest->sending || strcmp(guest->job_id, job->id) != 0)
    return;
  guest->sending = false;
  if (!error) {
    drain_set_guest(drain, guest, DRAIN_GUEST_MOVING, NULL);
    if (drain->state == DRAIN_STOPPING)
      drain_abort_jobs(drain);
    drain_step_soon(drain);
    return;
  }
  guest->job_id[0] = '\0';
  check_again(drain, guest,
              g_strdup_printf("its job could not be written to stable storage: %s", error->message),
              AGAIN_MS);
}

static Job *make_job(const Drain *drain, const DrainGuest *guest, const DrainTarget *target) {
  Job *job = job_new_for(&(JobRequest){
      .caller = drain->caller,
      .domain_name = guest->name,
      .domain_uuid = guest->uuid,
      .memory_bytes = guest->memory_bytes,
      .target_name = target->name,
      .target_uri = target->uri,
      .migrate_uri = target->migrate_uri,
      .goals = &guest->goals,
      .policy_name = drain->asked.policy_name,
      .policy_matched = guest->policy_matched,
  });

  job->drain_id = g_strdup(drain->id);
  return job;
}

static void send(Drain *drain, DrainGuest *guest, size_t index) {
  DrainTarget *target = drain->targets->pdata[index];
  Job *job = make_job(drain, guest, target);

  target->sent++;
  if (target->free_bytes != UINT64_MAX)
    target->free_bytes -= MIN(target->free_bytes, guest->memory_bytes);
  g_strlcpy(guest->job_id, job->id, sizeof guest->job_id);
  guest->sending = true;
  lifecycle_accept(drain->drains->mover, job, on_accepted, drain->drains);
}

static bool has_room(const Drains *drains) {
  return !drains->mover->host_going_down &&
         job_table_count_unfinished(drains->jobs->table) + drains->jobs->starting < drains->config->max_jobs;
}

void drain_send(Drain *drain) {
  const Drains *drains = drain->drains;
  g_autofree unsigned *to_targets = g_new0(unsigned, drain->targets->len);
  g_autofree bool *held = g_new0(bool, drain->targets->len);
  g_autofree MigDrainTarget *targets = g_new0(MigDrainTarget, drain->targets->len);
  g_autofree MigDrainGuest *guests = g_new0(MigDrainGuest, drain->guests->len);
  Load load = {0, to_targets, held};
  MigDrainChoice choice;

  weigh(drain, &load);
  if (load.running >= drains->config->max_outgoing)
    return;
  fill_targets(drain, &load, targets);
  fill_guests(drain, guests);
  while (load.running < drains->config->max_outgoing && has_room(drains) &&
         mig_drain_choose(guests, drain->guests->len, targets, drain->targets->len, &choice)) {
    DrainGuest *guest = drain->guests->pdata[choice.guest];

    /* Its measurement takes a second. Sending another guest meanwhile would break the order. */
    if (guest->measuring)
      return;
    send(drain, guest, choice.target);
    guests[choice.guest].waits = false;
    targets[choice.target].places--;
    targets[choice.target].sent++;
    targets[choice.target].free_bytes =
        ((const DrainTarget *)drain->targets->pdata[choice.target])->free_bytes;
    load.running++;
  }
}

/* --- a restart, and an abort --- */

void drain_adopt_jobs(Drain *drain) {
  const GPtrArray *all = job_table_all(drain->drains->jobs->table);

  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];
    DrainGuest *guest;
    size_t target;

    if (g_strcmp0(job->drain_id, drain->id) != 0)
      continue;
    guest = drain_add_guest(drain, job->domain_uuid, job->domain_name);
    target = target_of(drain, job);
    g_strlcpy(guest->job_id, job->id, sizeof guest->job_id);
    guest->memory_bytes = job->memory_bytes;
    if (target != NO_TARGET)
      ((DrainTarget *)drain->targets->pdata[target])->sent++;
    if (job_is_final(job))
      drain_note_job_over(drain, guest, job);
    else
      drain_set_guest(drain, guest, DRAIN_GUEST_MOVING, NULL);
  }
}

void drain_abort_jobs(Drain *drain) {
  g_autofree char *why = g_strdup_printf("at the request of %s", drain->aborted_by);

  for (guint i = 0; i < drain->guests->len; i++) {
    const DrainGuest *guest = drain->guests->pdata[i];
    Job *job = drain_find_job(drain, guest);

    if (!job || guest->sending || g_strcmp0(job->drain_id, drain->id) != 0 ||
        (job->phase != MIG_PHASE_PENDING && job->phase != MIG_PHASE_PREPARING))
      continue;
    if (lifecycle_take_back(drain->drains->mover, job, MIG_CAUSE_USER_ABORT, drain->aborter, why) ==
        LIFECYCLE_ABORT_ASKED)
      jobs_save(drain->drains->jobs, job, NULL, NULL);
  }
}
