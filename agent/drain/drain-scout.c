/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The questions of a drain: which domains are there, where can each of them go, how long would its migration take?
 *
 * Theory of Operation. No question blocks the main loop: checks run in a pool of their own (libvirtd/survey.c), everything
 * else is a LocalCall on the drain's own threads. Only a few of each kind run at a time, since others ask too. A target that
 * does not answer is left alone for a while, since each attempt costs a timeout. The answers are judged on the main loop,
 * where the configuration is.
 *
 * Guests are measured for the forecast once all have been checked, while they wait anyway. */
#include "agent/drain/drain-private.h"

#include "agent/base/clock.h"
#include "agent/job/jobjson.h"
#include "agent/job/log.h"

#include <string.h>

#define CHECKS_MAX 4
#define THREADS    4

/* How often the domains are listed, and the shortest time between two lists. */
#define LIST_INTERVAL_MS 5000
#define LIST_PAUSE_MS    200

/* How long a target that did not answer is left alone. */
#define AWAY_MS 10000

/* The time until the next attempt after a failed question. */
#define RETRY_MS 2000

#define PROBE_S 1

/* --- local calls --- */

typedef struct ScoutTask {
  char *uuid;
  GPtrArray *active; /* for a list */
  MigProbe probe;    /* for a measurement */
} ScoutTask;

static void task_free(gpointer data) {
  ScoutTask *task = data;

  g_clear_pointer(&task->active, g_ptr_array_unref);
  g_free(task->uuid);
  g_free(task);
}

static bool run_list(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  ScoutTask *task = data;

  task->active = driver->ops->list_active(conn, error);
  return task->active != NULL;
}

static bool run_measure(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  g_auto(MigDomainFacts) facts = {0};
  ScoutTask *task = data;

  if (!driver->ops->domain_facts(conn, task->uuid, &facts, error))
    return false;
  return mig_profile_expect(&facts.profile, g_get_real_time(), &task->probe) ||
         driver->ops->probe_dirty_rate(conn, task->uuid, PROBE_S, &task->probe, error);
}

/* Who asked. The drain may be over, or freed, when the answer comes, so it is looked up by its id. */
typedef struct ScoutCaller {
  Drains *drains;
  char drain_id[JOB_ID_SIZE];
  char uuid[MIG_UUID_STRING_SIZE];
  size_t target; /* for a check */
} ScoutCaller;

static ScoutCaller *caller_for(const Drain *drain, const DrainGuest *guest) {
  ScoutCaller *caller = g_new0(ScoutCaller, 1);

  caller->drains = drain->drains;
  g_strlcpy(caller->drain_id, drain->id, sizeof caller->drain_id);
  if (guest)
    g_strlcpy(caller->uuid, guest->uuid, sizeof caller->uuid);
  return caller;
}

/* NULL: the answer is no longer needed. */
static Drain *drain_of(const ScoutCaller *caller) {
  Drain *drain = caller->drains->drain;

  return drain && !drain_is_over(drain) && strcmp(drain->id, caller->drain_id) == 0 ? drain : NULL;
}

/* --- the list of domains --- */

static gint compare_names(gconstpointer a, gconstpointer b) {
  return strcmp((*(MigActiveDomain *const *)a)->name, (*(MigActiveDomain *const *)b)->name);
}

static void note_gone(Drain *drain, GHashTable *active) {
  for (guint i = 0; i < drain->guests->len; i++) {
    DrainGuest *guest = drain->guests->pdata[i];

    if ((guest->state != DRAIN_GUEST_CHECKING && guest->state != DRAIN_GUEST_WAITING &&
         guest->state != DRAIN_GUEST_CANNOT_MOVE) ||
        guest->sending || g_hash_table_contains(active, guest->uuid))
      continue;
    guest->gone_ms = drain->list_begun_ms;
    drain_set_guest(
        drain, guest, DRAIN_GUEST_GONE,
        g_strdup("no longer running on this node: it was shut down, or somebody else migrated it"));
  }
}

static void take_list(Drain *drain, GPtrArray *list) {
  g_autoptr(GHashTable) active = g_hash_table_new(g_str_hash, g_str_equal);

  g_ptr_array_sort(list, compare_names);
  for (guint i = 0; i < list->len; i++) {
    MigActiveDomain *domain = list->pdata[i];
    DrainGuest *guest = drain_find_guest(drain, domain->uuid);

    g_hash_table_add(active, domain->uuid);
    if (!guest)
      drain_add_guest(drain, domain->uuid, domain->name);
    else if (guest->state == DRAIN_GUEST_GONE && drain->list_begun_ms > guest->gone_ms)
      drain_set_guest(drain, guest, DRAIN_GUEST_CHECKING, NULL);
  }
  note_gone(drain, active);
  drain->listed = true;
}

static void on_list(gpointer data, const GError *error, gpointer user_data) {
  g_autofree ScoutCaller *caller = user_data;
  Drain *drain = drain_of(caller);
  ScoutTask *task = data;

  if (!drain)
    return;
  drain->listing = false;
  if (error)
    drain->list_due_ms = clock_now_ms() + RETRY_MS;
  else
    take_list(drain, task->active);
  drain_step_soon(drain);
}

static void ask_for_list(Drain *drain, uint64_t now_ms) {
  LocalCall call = {.run = run_list, .task = g_new0(ScoutTask, 1), .free_task = task_free};

  drain->listing = true;
  drain->list_begun_ms = now_ms;
  drain->list_due_ms = now_ms + LIST_INTERVAL_MS;
  local_calls_run(drain->local_calls, &call, on_list, caller_for(drain, NULL));
}

/* If no guest is unfinished, the end of the drain waits only for a list. */
static bool wants_list(const Drain *drain, uint64_t now_ms) {
  return !drain->listing && (now_ms >= drain->list_due_ms || !drain_has_unfinished(drain)) &&
         (!drain->listed || now_ms >= drain->list_begun_ms + LIST_PAUSE_MS);
}

/* --- where a domain can go --- */

/* False: the configuration no longer has the policy that was requested by name. */
static bool resolve_goals(Drain *drain, DrainGuest *guest, const MigDomainFacts *facts) {
  const Config *config = drain->drains->config;
  const ConfigPolicy *named = config_find_policy(config, drain->asked.policy_name);
  MigMatchFacts match = params_match_facts(facts);

  if (drain->asked.policy_name && !named)
    return false;
  goals_resolve(config, named, &drain->asked.over, &match, &guest->goals);
  g_free(guest->policy_matched);
  guest->policy_matched = g_strdup(guest->goals.matched ? guest->goals.matched->name : NULL);
  guest->goals.named = guest->goals.matched = NULL;
  return true;
}

static json_t *blockers_to_json(const MigCheckReport *report) {
  json_t *array = check_report_to_json(report);

  /* Blockers come first. */
  while (json_array_size(array) > report->blockers)
    json_array_remove(array, json_array_size(array) - 1);
  return array;
}

/* The target's number may not include guests that are on their way there. */
static void note_room(Drain *drain, size_t index, uint64_t free_bytes) {
  DrainTarget *target = drain->targets->pdata[index];

  for (guint i = 0; free_bytes != UINT64_MAX && i < drain->guests->len; i++) {
    const DrainGuest *guest = drain->guests->pdata[i];
    const Job *job = drain_find_job(drain, guest);

    if (job && strcmp(job->target_uri, target->uri) == 0)
      free_bytes -= MIN(free_bytes, guest->memory_bytes);
  }
  target->free_bytes = free_bytes;
}

static void note_away(DrainTarget *target, const MigCheckInput *input) {
  target->away_until_ms = input->target_away ? clock_now_ms() + AWAY_MS : 0;
}

static void set_fit(const Drain *drain, DrainGuest *guest, size_t index, MigDrainFit fit, json_t *blockers) {
  const DrainTarget *target = drain->targets->pdata[index];

  guest->fits[index] = guest->tried[index] || target->given_up ? MIG_DRAIN_FIT_NO : fit;
  json_decref(guest->blockers[index]);
  guest->blockers[index] = blockers;
}

static void judge(Drain *drain, DrainGuest *guest, size_t index, const MigCheckInput *answers) {
  g_autofree MigCheckReport *report = g_new(MigCheckReport, 1);
  MigCheckInput input = *answers;

  input.policy = &guest->goals.policy;
  mig_check(&input, report);
  if (input.target)
    note_room(drain, index, input.target->free_bytes);
  set_fit(drain, guest, index, mig_drain_fit(report), report->blockers > 0 ? blockers_to_json(report) : NULL);
}

/* "b: HOSTDEV_PCI, DISK_LOCAL; c: …" */
static char *describe_refusals(const Drain *drain, const DrainGuest *guest) {
  g_autoptr(GString) text = g_string_new(NULL);

  for (guint i = 0; i < drain->targets->len; i++) {
    const DrainTarget *target = drain->targets->pdata[i];
    json_t *finding;
    size_t k;

    g_string_append_printf(text, "%s%s: ", i > 0 ? "; " : "", drain_target_label(target));
    if (target->given_up) {
      g_string_append(text, target->given_up);
      continue;
    }
    json_array_foreach (guest->blockers[i], k, finding)
      g_string_append_printf(text, "%s%s", k > 0 ? ", " : "", json_string_of(finding, "code"));
  }
  return g_string_free(g_steal_pointer(&text), FALSE);
}

static bool was_tried(const Drain *drain, const DrainGuest *guest) {
  for (guint i = 0; i < drain->targets->len; i++)
    if (guest->tried[i])
      return true;
  return false;
}

static void say_stays(const Drain *drain, const DrainGuest *guest) {
  const LogField fields[] = {{NAMES_FIELD_DRAIN_ID, drain->id},
                             {NAMES_FIELD_DOMAIN_NAME, guest->name},
                             {NAMES_FIELD_DOMAIN_UUID, guest->uuid}};

  log_message(LOG_WARNING, NAMES_MESSAGE_DRAIN_GUEST_STAYS, fields, G_N_ELEMENTS(fields),
              "%s stays on this node: %s", guest->name, guest->message);
}

static void conclude(Drain *drain, DrainGuest *guest) {
  if (!mig_drain_is_stuck(guest->fits, drain->targets->len)) {
    drain_set_guest(drain, guest, DRAIN_GUEST_WAITING, NULL);
    return;
  }
  if (was_tried(drain, guest))
    /* Its message already has the outcome of the last attempt. */
    drain_set_guest(drain, guest, DRAIN_GUEST_LEFT, g_strdup(guest->message));
  else
    drain_set_guest(drain, guest, DRAIN_GUEST_CANNOT_MOVE, describe_refusals(drain, guest));
  say_stays(drain, guest);
}

/* Retries, but not forever: a libvirtd that cannot describe a domain for so long cannot migrate it either. */
static void note_untold(Drain *drain, DrainGuest *guest, const GError *error) {
  uint64_t now_ms = clock_now_ms(), limit_ms = drain->drains->config->unschedulable_timeout_ms;
  char *message = g_strdup_printf("it could not be checked: %s", error->message);

  if (guest->failed_ms == 0)
    guest->failed_ms = now_ms;
  guest->due_ms = now_ms + RETRY_MS;
  if (limit_ms == 0 || now_ms - guest->failed_ms < limit_ms) {
    drain_set_guest(drain, guest, DRAIN_GUEST_CHECKING, message);
    return;
  }
  drain_set_guest(drain, guest, DRAIN_GUEST_LEFT, message);
  say_stays(drain, guest);
}

/* All targets have answered. */
static void take_check(Drain *drain, DrainGuest *guest) {
  g_autoptr(GError) error = g_steal_pointer(&guest->check_error);

  if (guest->state != DRAIN_GUEST_CHECKING)
    return;
  guest->checked = true;
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN)) {
    guest->gone_ms = clock_now_ms();
    drain_set_guest(drain, guest, DRAIN_GUEST_GONE, g_strdup("no longer on this node"));
  } else if (error) {
    note_untold(drain, guest, error);
  } else {
    guest->failed_ms = 0;
    conclude(drain, guest);
  }
}

static void on_check(const MigCheckInput *input, const GError *error, gpointer user_data) {
  g_autofree ScoutCaller *caller = user_data;
  Drain *drain = drain_of(caller);
  DrainGuest *guest = drain ? drain_find_guest(drain, caller->uuid) : NULL;

  if (!guest)
    return;
  drain->checks--;
  if (error) {
    g_clear_error(&guest->check_error);
    guest->check_error = g_error_copy(error);
  } else {
    guest->memory_bytes = input->domain->memory_bytes;
    note_away(drain->targets->pdata[caller->target], input);
    if (resolve_goals(drain, guest, input->domain))
      judge(drain, guest, caller->target, input);
    else if (!guest->check_error)
      guest->check_error =
          g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_INVALID, "policy %s is no longer in the configuration",
                      drain->asked.policy_name);
  }
  if (--guest->asked == 0)
    take_check(drain, guest);
  drain_step_soon(drain);
}

/* At least one target is asked, since the check also covers the domain itself. */
static bool is_worth_asking(const Drain *drain, size_t index, bool all_away, uint64_t now_ms) {
  const DrainTarget *target = drain->targets->pdata[index];

  return all_away ? index == 0 : now_ms >= target->away_until_ms;
}

static void ask_for_check(Drain *drain, DrainGuest *guest, uint64_t now_ms) {
  bool all_away = true;

  for (guint i = 0; i < drain->targets->len; i++)
    all_away = all_away && now_ms < ((const DrainTarget *)drain->targets->pdata[i])->away_until_ms;
  /* Counted before the first question: its answer may come at once. */
  for (guint i = 0; i < drain->targets->len; i++)
    guest->asked += is_worth_asking(drain, i, all_away, now_ms);
  drain->checks += guest->asked;
  for (guint i = 0; i < drain->targets->len; i++) {
    ScoutCaller *caller;

    if (!is_worth_asking(drain, i, all_away, now_ms)) {
      set_fit(drain, guest, i, MIG_DRAIN_FIT_NOT_NOW, NULL);
      continue;
    }
    caller = caller_for(drain, guest);
    caller->target = i;
    survey_call(drain->drains->surveys, guest->uuid, ((const DrainTarget *)drain->targets->pdata[i])->uri,
                drain->drains->config->prepare_timeout_ms, on_check, caller);
  }
}

static bool wants_check(const DrainGuest *guest, uint64_t now_ms) {
  return guest->state == DRAIN_GUEST_CHECKING && guest->asked == 0 && now_ms >= guest->due_ms;
}

/* --- how long its migration would take --- */

static void on_measurement(gpointer data, const GError *error, gpointer user_data) {
  g_autofree ScoutCaller *caller = user_data;
  Drain *drain = drain_of(caller);
  DrainGuest *guest = drain ? drain_find_guest(drain, caller->uuid) : NULL;
  const ScoutTask *task = data;

  if (!guest)
    return;
  drain->measurements--;
  guest->measuring = false;
  if (!error)
    guest->probe = task->probe;
  drain_step_soon(drain);
}

static void ask_for_measurement(Drain *drain, DrainGuest *guest) {
  LocalCall call = {
      .run = run_measure, .task = g_new0(ScoutTask, 1), .free_task = task_free, .extra_ms = PROBE_S * 2000};

  ((ScoutTask *)call.task)->uuid = g_strdup(guest->uuid);
  guest->measured = guest->measuring = true;
  drain->measurements++;
  local_calls_run(drain->local_calls, &call, on_measurement, caller_for(drain, guest));
}

static bool wants_measurement(const Drain *drain, const DrainGuest *guest) {
  return drain->state == DRAIN_MOVING && guest->state == DRAIN_GUEST_WAITING && !guest->sending &&
         !guest->measured;
}

/* --- all questions --- */

void drain_ask(Drain *drain) {
  uint64_t now_ms = clock_now_ms();

  /* An unreachable libvirtd cannot answer. The journal has it, and the drain waits. */
  if (!hypervisor_get_state(drain->drains->mover->hypervisor)->reachable)
    return;
  if (wants_list(drain, now_ms))
    ask_for_list(drain, now_ms);
  for (guint i = 0; i < drain->guests->len && drain->checks < CHECKS_MAX; i++)
    if (wants_check(drain->guests->pdata[i], now_ms))
      ask_for_check(drain, drain->guests->pdata[i], now_ms);
  /* One thread stays free for the list. */
  for (guint i = 0; i < drain->guests->len && drain->measurements < THREADS - 1; i++)
    if (wants_measurement(drain, drain->guests->pdata[i]))
      ask_for_measurement(drain, drain->guests->pdata[i]);
}

void drain_begin(Drain *drain) {
  Drains *drains = drain->drains;

  drain->local_calls = local_calls_new(drains->mover->hypervisor, drains->mover->context, THREADS,
                                       drains->config->connect_timeout_ms);
  drain_step_soon(drain);
}
