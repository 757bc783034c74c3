/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Draining this node.
 *
 * Theory of Operation. A drain is a record (targets, goals, whether it was aborted) and a step. The step runs several times
 * a second, and soon after anything that may have changed something. It looks at the drain's jobs, asks libvirtd for what
 * it does not know (drain-scout.c), starts the migrations that can run (drain-send.c; core/drain.c decides which guest
 * goes where), and ends the drain when nothing is left to do. Its outcome depends on the state alone, not on the caller.
 * So after a crash a drain needs only its record and its jobs to resume: each job has the drain's id.
 *
 * The drain creates no more jobs than can run. The other guests wait here, not in the queue, so that order and target are
 * chosen as late as possible. A job that the queue holds for a condition does not count.
 *
 * The domains are listed every few seconds, when libvirtd reports a change, and before the end: a drain is over when a list
 * that was requested after the last change shows nothing new. */
#include "agent/drain/drain-private.h"

#include "agent/base/clock.h"
#include "agent/base/id.h"
#include "agent/job/log.h"

#include <string.h>

Drain *drain_new(Drains *drains) {
  Drain *drain = g_new0(Drain, 1);

  id_make(drain->id);
  drain->drains = drains;
  drain->started_usec = g_get_real_time();
  drain->targets = g_ptr_array_new();
  drain->guests = g_ptr_array_new();
  drain->by_uuid = g_hash_table_new(g_str_hash, g_str_equal);
  mig_policy_init(&drain->asked.over);
  return drain;
}

static void target_free(DrainTarget *target) {
  g_free(target->name);
  g_free(target->uri);
  g_free(target->migrate_uri);
  g_free(target->given_up);
  g_free(target);
}

static void guest_free(const Drain *drain, DrainGuest *guest) {
  for (guint i = 0; i < drain->targets->len; i++)
    json_decref(guest->blockers[i]);
  g_free(guest->blockers);
  g_clear_error(&guest->check_error);
  g_free(guest->fits);
  g_free(guest->tried);
  g_free(guest->name);
  g_free(guest->message);
  g_free(guest->policy_matched);
  g_free(guest);
}

static void forget_guests(Drain *drain) {
  g_hash_table_remove_all(drain->by_uuid);
  for (guint i = 0; i < drain->guests->len; i++)
    guest_free(drain, drain->guests->pdata[i]);
  g_ptr_array_set_size(drain->guests, 0);
}

static void forget_soon(Drain *drain) {
  if (drain->soon)
    g_source_destroy(drain->soon);
  g_clear_pointer(&drain->soon, g_source_unref);
}

void drain_free(Drain *drain) {
  if (!drain)
    return;
  drain->closing = true;
  forget_soon(drain);
  local_calls_free(drain->local_calls);
  drain_watchers_free(drain);
  forget_guests(drain);
  for (guint i = 0; i < drain->targets->len; i++)
    target_free(drain->targets->pdata[i]);
  g_ptr_array_unref(drain->targets);
  g_ptr_array_unref(drain->guests);
  g_hash_table_unref(drain->by_uuid);
  json_decref(drain->final_guests);
  goals_param_clear(&drain->asked);
  g_free(drain->request_key);
  g_free(drain->digest);
  g_free(drain->by);
  caller_free(drain->caller);
  caller_free(drain->aborter);
  g_free(drain->aborted_by);
  g_free(drain);
}

/* --- targets and guests --- */

void drain_add_target(Drain *drain, const char *name, const char *uri, const char *migrate_uri) {
  DrainTarget *target;

  for (guint i = 0; i < drain->targets->len; i++)
    if (strcmp(((const DrainTarget *)drain->targets->pdata[i])->uri, uri) == 0)
      return;
  target = g_new0(DrainTarget, 1);
  target->name = g_strdup(name);
  target->uri = g_strdup(uri);
  target->migrate_uri = g_strdup(migrate_uri);
  target->free_bytes = UINT64_MAX;
  g_ptr_array_add(drain->targets, target);
}

const char *drain_target_label(const DrainTarget *target) {
  return target->name ? target->name : target->uri;
}

DrainGuest *drain_find_guest(const Drain *drain, const char *uuid) {
  return g_hash_table_lookup(drain->by_uuid, uuid);
}

DrainGuest *drain_add_guest(Drain *drain, const char *uuid, const char *name) {
  DrainGuest *guest = drain_find_guest(drain, uuid);

  if (guest)
    return guest;
  guest = g_new0(DrainGuest, 1);
  g_strlcpy(guest->uuid, uuid, sizeof guest->uuid);
  guest->name = job_copy_text(name);
  guest->fits = g_malloc0_n(drain->targets->len, sizeof *guest->fits);
  guest->blockers = g_new0(json_t *, drain->targets->len);
  guest->tried = g_new0(bool, drain->targets->len);
  g_ptr_array_add(drain->guests, guest);
  g_hash_table_insert(drain->by_uuid, guest->uuid, guest);
  drain_set_guest(drain, guest, DRAIN_GUEST_CHECKING, NULL);
  return guest;
}

void drain_set_guest(Drain *drain, DrainGuest *guest, DrainGuestState state, char *message) {
  if (guest->state != state)
    drain->changed_ms = clock_now_ms();
  guest->state = state;
  g_free(guest->message);
  guest->message = job_copy_text(message);
  g_free(message);
  guest->revision = ++drain->revision;
}

void drain_count(const Drain *drain, unsigned *ret_counts) {
  if (drain->final_guests) {
    memcpy(ret_counts, drain->final_counts, sizeof drain->final_counts);
    return;
  }
  memset(ret_counts, 0, sizeof drain->final_counts);
  for (guint i = 0; i < drain->guests->len; i++)
    ret_counts[((const DrainGuest *)drain->guests->pdata[i])->state]++;
}

bool drain_is_over(const Drain *drain) {
  return drain->state == DRAIN_FINISHED || drain->state == DRAIN_ABORTED;
}

bool drain_has_begun(const Drain *drain) {
  return drain->local_calls != NULL;
}

/* --- the step --- */

static void set_state(Drain *drain, DrainState state) {
  drain->state = state;
  drain->revision++;
}

/* Every guest on the first list has been checked, or could not be for now. */
static bool is_surveyed(const Drain *drain) {
  if (!drain->listed)
    return false;
  for (guint i = 0; i < drain->guests->len; i++) {
    const DrainGuest *guest = drain->guests->pdata[i];

    if (guest->state == DRAIN_GUEST_CHECKING && !guest->checked)
      return false;
  }
  return true;
}

/* After an abort: guests that were not sent stay, whatever they waited for. */
static void leave_the_rest(Drain *drain) {
  for (guint i = 0; i < drain->guests->len; i++) {
    DrainGuest *guest = drain->guests->pdata[i];

    if (guest->state == DRAIN_GUEST_CHECKING || (guest->state == DRAIN_GUEST_WAITING && !guest->sending))
      drain_set_guest(drain, guest, DRAIN_GUEST_LEFT,
                      g_strdup("the drain was aborted before its migration started"));
  }
}

bool drain_has_unfinished(const Drain *drain) {
  unsigned counts[DRAIN_GUEST_STATE_COUNT];

  drain_count(drain, counts);
  return counts[DRAIN_GUEST_CHECKING] + counts[DRAIN_GUEST_WAITING] + counts[DRAIN_GUEST_MOVING] > 0;
}

static bool is_done(const Drain *drain) {
  if (drain_has_unfinished(drain))
    return false;
  return drain->state == DRAIN_STOPPING ||
         (drain->listed && !drain->listing && drain->list_begun_ms > drain->changed_ms);
}

static void finish(Drain *drain) {
  bool aborted = drain->state == DRAIN_STOPPING;
  unsigned counts[DRAIN_GUEST_STATE_COUNT];
  unsigned stay;

  drain_count(drain, counts);
  stay = counts[DRAIN_GUEST_CANNOT_MOVE] + counts[DRAIN_GUEST_LEFT];
  drain->finished_usec = g_get_real_time();
  set_state(drain, aborted ? DRAIN_ABORTED : DRAIN_FINISHED);
  drain_flush(drain);
  drain->final_guests = drain_guests_to_json(drain, 0);
  memcpy(drain->final_counts, counts, sizeof counts);
  forget_guests(drain);
  drain_save(drain);
  log_message(
      stay > 0 ? LOG_WARNING : LOG_NOTICE, NAMES_MESSAGE_DRAIN_ENDED,
      (const LogField[]){{NAMES_FIELD_DRAIN_ID, drain->id}}, 1,
      "the drain of this node %s: %u domains migrated, %u cannot be migrated, %u left behind, %u gone; the "
      "node stays cordoned",
      aborted ? "was aborted" : "has finished", counts[DRAIN_GUEST_MOVED], counts[DRAIN_GUEST_CANNOT_MOVE],
      counts[DRAIN_GUEST_LEFT], counts[DRAIN_GUEST_GONE]);
  mover_status_changed(drain->drains->mover);
}

static void step(Drain *drain) {
  if (drain_is_over(drain) || drain->stepping || !drain_has_begun(drain))
    return;
  /* What happens here changes jobs, and their observer would call for another step. */
  drain->stepping = true;
  drain_follow_jobs(drain);
  if (drain->state == DRAIN_STOPPING)
    leave_the_rest(drain);
  else
    drain_ask(drain);
  if (drain->state == DRAIN_CHECKING && is_surveyed(drain))
    set_state(drain, DRAIN_MOVING);
  if (drain->state == DRAIN_MOVING)
    drain_send(drain);
  if (is_done(drain))
    finish(drain);
  else
    drain_flush(drain);
  drain->stepping = false;
}

static gboolean on_soon(gpointer user_data) {
  Drain *drain = user_data;

  forget_soon(drain);
  step(drain);
  return G_SOURCE_REMOVE;
}

void drain_step_soon(Drain *drain) {
  if (drain->soon || drain->closing || drain_is_over(drain))
    return;
  drain->soon = g_idle_source_new();
  g_source_set_priority(drain->soon, G_PRIORITY_DEFAULT);
  g_source_set_callback(drain->soon, on_soon, drain, NULL);
  g_source_attach(drain->soon, drain->drains->mover->context);
}

/* --- for the rest of the agent --- */

void drain_read(Drains *drains, json_t *record, const GError *error) {
  g_autoptr(GError) bad = NULL;

  if (record)
    drains->drain = drain_from_record(drains, record, &bad);
  if (!drains->drain)
    log_message(
        LOG_ERR, NAMES_MESSAGE_STORE_DAMAGED, (const LogField[]){{NAMES_FIELD_PATH, DRAIN_RECORD_ID ".json"}},
        1,
        "cannot read the record of the drain (%s): if a drain was in progress, it does not resume, but the "
        "migrations it had started continue. To drain the node, run handoffctl drain again",
        error ? error->message : bad->message);
}

void drain_resume(Drains *drains) {
  Drain *drain = drains->drain;

  if (!drain || drain_is_over(drain))
    return;
  log_message(LOG_NOTICE, NAMES_MESSAGE_DRAIN_RESUMED, (const LogField[]){{NAMES_FIELD_DRAIN_ID, drain->id}},
              1, "resuming the drain of this node");
  drain_adopt_jobs(drain);
  if (drain->state == DRAIN_STOPPING)
    drain_abort_jobs(drain);
  drain_begin(drain);
}

void drain_tick(Drains *drains) {
  if (drains->drain)
    step(drains->drain);
}

void drain_on_job(Job *job, JobChange change, gpointer user_data) {
  const Drains *drains = user_data;
  Drain *drain = drains->drain;
  DrainGuest *guest = drain ? drain_find_guest(drain, job->domain_uuid) : NULL;

  if (change != JOB_CHANGE_STATE && change != JOB_CHANGE_NUMBERS)
    return;
  if (!guest || strcmp(guest->job_id, job->id) != 0)
    return;
  guest->revision = ++drain->revision;
  /* Now: the job may be dropped from the table before the next step. */
  if (guest->state == DRAIN_GUEST_MOVING && job_is_final(job))
    drain_note_job_over(drain, guest, job);
  if (change == JOB_CHANGE_STATE)
    drain_step_soon(drain);
}

void drain_handle_event(Drains *drains, const MigVirtEvent *event) {
  Drain *drain = drains->drain;

  if (!drain || drain_is_over(drain) || event->kind != MIG_VIRT_EVENT_STATE)
    return;
  drain->list_due_ms = 0;
  drain_step_soon(drain);
}

bool drain_is_active(const Drains *drains) {
  return drains->drain && !drain_is_over(drains->drain);
}

json_t *drain_to_json(const Drains *drains) {
  return drains->drain ? drain_status_to_json(drains->drain) : NULL;
}
