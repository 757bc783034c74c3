/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The method Evaluate (method/evaluate.c only forwards its calls to here), and the count that GetNode shows.
 *
 * Theory of Operation. libvirtd is asked on the evaluator's own threads (libvirtd/local-call.c), so that hundreds of domains
 * do not hold up anybody's Start. GetNode only shows the last count and its time. Domains are counted again
 *
 * - one by one, when an event says that a domain may have changed: DELAY_MS after the first such event, together with the
 *   others that came meanwhile;
 * - all of them, when libvirtd is reachable again, and every EvaluateInterval=: libvirt 9 sends no event for most changes of
 *   a definition alone (virsh attach-device --config), so events cover only a small part;
 * - those that a call of Evaluate looks at anyway.
 *
 * One count runs at a time. If it fails, all are counted again RETRY_MS later. All state belongs to the main thread. */
#include "agent/node/evaluate.h"

#include "agent/base/clock.h"
#include "agent/libvirtd/compare.h"
#include "agent/libvirtd/local-call.h"
#include "agent/node/node.h"
#include "agent/request/params.h"

#include <string.h>

#define THREADS  2
#define DELAY_MS 500
/* After a failed count. */
#define RETRY_MS 5000
/* With more domains due than this, all are counted. */
#define DUE_MAX 64
/* How much longer all domains may take than one. A caller still gets its reply in time. */
#define ALL_EXTRA_MS 10000
/* Changes in one reply; domains beyond that are listed without theirs. */
#define REPLY_CHANGES_MAX 4000

typedef struct Count {
  bool unread;
  unsigned counts[MIG_REMEDY_COUNT];
} Count;

struct Evaluator {
  Node *node;
  LocalCalls *local_calls;
  GHashTable *counts; /* UUID: Count, of all running domains */
  GHashTable *due;    /* UUIDs of domains to count again */
  bool all_due;
  bool counting;
  bool failed;           /* the last count did */
  uint64_t due_since_ms; /* since when `due` is not empty */
  uint64_t all_begun_ms; /* when the last count of all started */
  int64_t seen_usec;     /* when the last count of all succeeded; 0: never */
};

/* One question. While it runs it belongs to the thread. */
typedef struct CountTask {
  char *domain;     /* a call of Evaluate asks for it, or NULL */
  GPtrArray *uuids; /* NULL: all running domains */
  GPtrArray *found;
} CountTask;

static void task_free(gpointer data) {
  CountTask *task = data;

  g_free(task->domain);
  g_clear_pointer(&task->uuids, g_ptr_array_unref);
  g_clear_pointer(&task->found, g_ptr_array_unref);
  g_free(task);
}

static bool run(MigDriver *driver, MigConn *conn, gpointer data, GError **error) {
  CountTask *task = data;
  Comparison *one;

  if (!task->domain) {
    task->found = compare_domains(driver, conn, task->uuids, error);
    return task->found != NULL;
  }
  one = compare_domain(driver, conn, task->domain, error);
  if (!one)
    return false;
  task->found = g_ptr_array_new_with_free_func(comparison_free);
  g_ptr_array_add(task->found, one);
  return true;
}

/* Takes `domain` and `uuids`. */
static void ask(Evaluator *evaluator, char *domain, GPtrArray *uuids, LocalCallDoneFunc done,
                gpointer user_data) {
  CountTask *task = g_new0(CountTask, 1);
  const LocalCall call = {
      .run = run, .task = task, .free_task = task_free, .extra_ms = domain ? 0 : ALL_EXTRA_MS};

  task->domain = domain;
  task->uuids = uuids;
  local_calls_run(evaluator->local_calls, &call, done, user_data);
}

/* --- the count --- */

static void count_one(Evaluator *evaluator, const Comparison *comparison) {
  Count *count;

  g_hash_table_remove(evaluator->counts, comparison->uuid);
  if (!comparison->running)
    return;
  count = g_new0(Count, 1);
  count->unread = comparison->error != NULL;
  memcpy(count->counts, comparison->counts, sizeof count->counts);
  g_hash_table_insert(evaluator->counts, g_strdup(comparison->uuid), count);
}

/* Domains that were asked for and not found are no longer running. */
static void take_count(Evaluator *evaluator, const CountTask *task) {
  if (task->uuids) {
    for (guint i = 0; i < task->uuids->len; i++)
      g_hash_table_remove(evaluator->counts, task->uuids->pdata[i]);
  } else if (!task->domain) {
    g_hash_table_remove_all(evaluator->counts);
    evaluator->seen_usec = g_get_real_time();
  }
  for (guint i = 0; i < task->found->len; i++)
    count_one(evaluator, task->found->pdata[i]);
}

static void on_counted(gpointer data, const GError *error, gpointer user_data) {
  Evaluator *evaluator = user_data;

  evaluator->counting = false;
  evaluator->failed = error != NULL;
  if (error)
    evaluator->all_due = true;
  else
    take_count(evaluator, data);
}

static bool is_all_due(const Evaluator *evaluator, uint64_t now_ms) {
  uint64_t interval_ms = evaluator->node->config->evaluate_interval_ms;
  uint64_t since_ms = now_ms - evaluator->all_begun_ms;

  if (evaluator->all_due)
    return evaluator->all_begun_ms == 0 || since_ms >= (evaluator->failed ? RETRY_MS : DELAY_MS);
  return interval_ms > 0 && since_ms >= interval_ms;
}

static GPtrArray *take_due(Evaluator *evaluator) {
  GPtrArray *uuids = g_ptr_array_new_with_free_func(g_free);
  GHashTableIter iter;
  gpointer uuid;

  g_hash_table_iter_init(&iter, evaluator->due);
  while (g_hash_table_iter_next(&iter, &uuid, NULL)) {
    g_ptr_array_add(uuids, uuid);
    g_hash_table_iter_steal(&iter);
  }
  return uuids;
}

void evaluator_tick(Evaluator *evaluator) {
  uint64_t now_ms = clock_now_ms();

  if (evaluator->counting || !hypervisor_get_state(evaluator->node->mover->hypervisor)->reachable)
    return;
  if (is_all_due(evaluator, now_ms)) {
    evaluator->counting = true;
    evaluator->all_due = false;
    evaluator->all_begun_ms = now_ms;
    g_hash_table_remove_all(evaluator->due);
    ask(evaluator, NULL, NULL, on_counted, evaluator);
  } else if (g_hash_table_size(evaluator->due) > 0 && now_ms - evaluator->due_since_ms >= DELAY_MS) {
    evaluator->counting = true;
    ask(evaluator, NULL, take_due(evaluator), on_counted, evaluator);
  }
}

void evaluator_handle_event(Evaluator *evaluator, const MigVirtEvent *event) {
  if (event->kind != MIG_VIRT_EVENT_STATE && event->kind != MIG_VIRT_EVENT_DEFINITION)
    return;
  if (g_hash_table_size(evaluator->due) == 0)
    evaluator->due_since_ms = clock_now_ms();
  if (g_hash_table_size(evaluator->due) < DUE_MAX)
    g_hash_table_add(evaluator->due, g_strdup(event->uuid));
  else
    evaluator->all_due = true;
}

void evaluator_libvirt_is_back(Evaluator *evaluator) {
  evaluator->all_due = true;
}

json_t *evaluator_count_to_json(const Evaluator *evaluator) {
  int domains[MIG_REMEDY_COUNT] = {0}, unread = 0;
  json_t *object;
  GHashTableIter iter;
  gpointer value;

  if (evaluator->seen_usec == 0)
    return NULL;
  g_hash_table_iter_init(&iter, evaluator->counts);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    const Count *count = value;

    unread += count->unread;
    for (int i = 0; i < MIG_REMEDY_COUNT; i++)
      domains[i] += count->counts[i] > 0;
  }
  object = json_pack("{si si sI}", "domains", (int)g_hash_table_size(evaluator->counts), "unread", unread,
                     "seen_usec_realtime", (json_int_t)evaluator->seen_usec);
  for (int i = 0; i < MIG_REMEDY_COUNT; i++)
    json_object_set_new(object, mig_remedy_name((MigRemedy)i), json_integer(domains[i]));
  return object;
}

Evaluator *evaluator_new(Node *node) {
  Evaluator *evaluator = g_new0(Evaluator, 1);

  evaluator->node = node;
  evaluator->local_calls = local_calls_new(node->mover->hypervisor, node->mover->context, THREADS,
                                           node->config->connect_timeout_ms);
  evaluator->counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
  evaluator->due = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  return evaluator;
}

void evaluator_free(Evaluator *evaluator) {
  if (!evaluator)
    return;
  local_calls_free(evaluator->local_calls);
  g_hash_table_unref(evaluator->counts);
  g_hash_table_unref(evaluator->due);
  g_free(evaluator);
}

/* --- the method --- */

typedef struct EvaluateCall {
  Node *node;
  VarlinkCall *call;
  char *domain; /* or NULL */
} EvaluateCall;

static void question_free(EvaluateCall *question) {
  if (!question)
    return;
  varlink_call_unref(question->call);
  g_free(question->domain);
  g_free(question);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EvaluateCall, question_free)

/* Texts are cut to size, possibly in the middle of a character. */
static void set_text(json_t *object, const char *key, const char *text) {
  g_autofree char *valid = g_utf8_make_valid(text, -1);

  json_object_set_new(object, key, json_string(valid));
}

static json_t *change_to_json(const MigChange *change) {
  json_t *object =
      json_pack("{ss ss sb}", "code", change->code, "remedy", mig_remedy_name(change->remedy), "by_migration",
                (int)(change->by_migration || change->remedy == MIG_REMEDY_MIGRATION));

  set_text(object, "item", change->item);
  if (*change->live)
    set_text(object, "live", change->live);
  if (*change->next)
    set_text(object, "next", change->next);
  set_text(object, "message", change->message);
  return object;
}

static json_t *comparison_to_json(const Comparison *comparison, size_t *room) {
  json_t *changes = json_array(), *object;
  size_t n = MIN(comparison->n_changes, COMPARE_CHANGES_MAX);

  if (n > *room)
    n = 0;
  *room -= n;
  for (size_t i = 0; i < n; i++)
    json_array_append_new(changes, change_to_json(&comparison->changes[i]));
  object = json_pack("{s{ss ss} sb sb so sI}", "domain", "name", comparison->name, "uuid", comparison->uuid,
                     "running", (int)comparison->running, "persistent", (int)comparison->persistent,
                     "changes", changes, "changes_total", (json_int_t)comparison->n_changes);
  if (comparison->error)
    json_object_set_new(object, "error", json_string(comparison->error));
  return object;
}

static void on_evaluated(gpointer data, const GError *error, gpointer user_data) {
  g_autoptr(EvaluateCall) question = user_data;
  size_t room = REPLY_CHANGES_MAX;
  const CountTask *task = data;
  json_t *domains;

  if (error) {
    reply_lookup_error(question->node->requests, question->call, question->domain ? question->domain : "",
                       error);
    return;
  }
  take_count(question->node->evaluator, task);
  domains = json_array();
  for (guint i = 0; i < task->found->len; i++)
    json_array_append_new(domains, comparison_to_json(task->found->pdata[i], &room));
  varlink_call_reply(question->call, json_pack("{so}", "domains", domains), false);
}

void evaluator_answer(Evaluator *evaluator, VarlinkCall *call, json_t *parameters) {
  EvaluateCall *question = g_new0(EvaluateCall, 1);

  question->node = evaluator->node;
  question->call = varlink_call_ref(call);
  question->domain = g_strdup(json_string_of(parameters, "domain"));
  ask(evaluator, g_strdup(question->domain), NULL, on_evaluated, question);
}
