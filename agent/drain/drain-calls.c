/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The methods Drain, WatchDrain and AbortDrain: method/drain.c only forwards its calls to here. And the watchers.
 *
 * Each watcher has the revision of the drain up to which it knows everything. Its next reply has the domains that changed
 * since. A slow reader therefore gets fewer replies, but misses nothing that is still true. */
#include "agent/drain/drain-private.h"

#include "agent/job/log.h"
#include "agent/request/reply.h"
#include "agent/request/request-key.h"

#include <string.h>

typedef struct DrainWatcher {
  Drain *drain;
  VarlinkCall *call;
  uint64_t told;
} DrainWatcher;

static void watcher_free(gpointer data) {
  DrainWatcher *watcher = data;

  varlink_call_set_hooks(watcher->call, NULL, NULL, NULL);
  varlink_call_unref(watcher->call);
  g_free(watcher);
}

static json_t *news(const Drain *drain, uint64_t after) {
  return json_pack("{so so}", "drain", drain_status_to_json(drain), "guests",
                   drain_guests_to_json(drain, after));
}

/* True: that was the last reply. */
static bool tell(DrainWatcher *watcher) {
  Drain *drain = watcher->drain;
  bool last = drain_is_over(drain);

  if (watcher->told == drain->revision || (!last && varlink_call_get_queued_bytes(watcher->call) > 0))
    return false;
  varlink_call_reply(watcher->call, news(drain, watcher->told), !last);
  watcher->told = drain->revision;
  return last;
}

static void on_closed(VarlinkCall *call, gpointer user_data) {
  DrainWatcher *watcher = user_data;

  g_ptr_array_remove_fast(watcher->drain->watchers, watcher);
}

static void on_drained(VarlinkCall *call, gpointer user_data) {
  tell(user_data);
}

static void watch(Drain *drain, VarlinkCall *call) {
  DrainWatcher *watcher;

  varlink_call_reply(call, news(drain, 0), !drain_is_over(drain));
  if (drain_is_over(drain))
    return;
  watcher = g_new0(DrainWatcher, 1);
  watcher->drain = drain;
  watcher->call = varlink_call_ref(call);
  watcher->told = drain->revision;
  if (!drain->watchers)
    drain->watchers = g_ptr_array_new_with_free_func(watcher_free);
  g_ptr_array_add(drain->watchers, watcher);
  varlink_call_set_hooks(call, on_drained, on_closed, watcher);
}

void drain_flush(Drain *drain) {
  GPtrArray *watchers = drain->watchers;

  /* Backwards: a watcher whose client is gone removes itself. */
  for (guint i = watchers ? watchers->len : 0; i > 0; i--)
    if (i <= watchers->len)
      tell(watchers->pdata[i - 1]);
  if (drain_is_over(drain))
    drain_watchers_free(drain);
}

void drain_watchers_free(Drain *drain) {
  g_clear_pointer(&drain->watchers, g_ptr_array_unref);
}

/* --- records --- */

static void on_saved(const char *id, const GError *error, gpointer user_data) {
  if (error)
    log_message(LOG_ERR, NAMES_MESSAGE_STORE_FAILED, NULL, 0,
                "cannot write the record of the drain to stable storage: %s", error->message);
}

void drain_save(Drain *drain) {
  store_write(drain->drains->jobs->store, DRAIN_RECORD_ID, drain_to_record(drain), on_saved, NULL);
}

typedef struct DrainSaved {
  Drains *drains;
  VarlinkCall *call;
  char id[JOB_ID_SIZE];
} DrainSaved;

/* The drain that was saved; NULL if another has replaced it. */
static Drain *drain_of(const DrainSaved *saved) {
  Drain *drain = saved->drains->drain;

  return drain && strcmp(drain->id, saved->id) == 0 ? drain : NULL;
}

static void save_and(Drain *drain, VarlinkCall *call, StoreDoneFunc done) {
  DrainSaved *saved = g_new0(DrainSaved, 1);

  saved->drains = drain->drains;
  saved->call = varlink_call_ref(call);
  g_strlcpy(saved->id, drain->id, sizeof saved->id);
  store_write(drain->drains->jobs->store, DRAIN_RECORD_ID, drain_to_record(drain), done, saved);
}

/* --- Drain --- */

static bool take_request_key(Drain *drain, VarlinkCall *call, json_t *parameters) {
  RequestKey key;

  if (!request_key_take(call, parameters, &key))
    return false;
  drain->request_key = key.key;
  drain->digest = key.digest;
  return true;
}

static bool take_targets(Drain *drain, VarlinkCall *call, json_t *names) {
  json_t *name;
  size_t i;

  if (json_array_size(names) == 0 || json_array_size(names) > DRAIN_TARGETS_MAX) {
    varlink_call_invalid_parameter(call, "targets");
    return false;
  }
  json_array_foreach (names, i, name) {
    json_t *one = json_pack("{sO}", "target", name);
    TargetParam target;
    bool ok = params_take_target(drain->drains->requests, call, one, &target);

    /* All targets are kept in one record, whose size is limited. */
    if (ok && (strlen(target.libvirt_uri) > JOB_URI_MAX ||
               (target.migrate_uri && strlen(target.migrate_uri) > JOB_URI_MAX) ||
               (target.name && strlen(target.name) > JOB_NAME_MAX))) {
      varlink_call_invalid_parameter(call, "targets");
      ok = false;
    }
    if (ok)
      drain_add_target(drain, target.name, target.libvirt_uri, target.migrate_uri);
    json_decref(one);
    if (!ok)
      return false;
  }
  return true;
}

static bool take_goals(Drain *drain, VarlinkCall *call, json_t *parameters) {
  Goals unused;

  return params_take_goals(drain->drains->requests, call, parameters, &drain->asked) &&
         params_resolve_goals(drain->drains->requests, call, &drain->asked, NULL, &unused);
}

static void refuse_busy(VarlinkCall *call, const Drain *drain) {
  json_t *targets = json_array();

  for (guint i = 0; i < drain->targets->len; i++)
    json_array_append_new(targets, json_string(drain_target_label(drain->targets->pdata[i])));
  reply_error(call, "DrainBusy", json_pack("{ss so}", "drain", drain->id, "targets", targets));
}

static void on_begun(const char *id, const GError *error, gpointer user_data) {
  DrainSaved *saved = user_data;
  g_autoptr(VarlinkCall) call = saved->call;
  Drain *drain = drain_of(saved);

  if (error) {
    reply_error(call, "StoreFailed", json_pack("{ss}", "message", error->message));
    if (drain)
      g_clear_pointer(&saved->drains->drain, drain_free);
  } else if (drain) {
    if (!drain_has_begun(drain))
      drain_begin(drain);
    watch(drain, call);
  }
  g_free(saved);
}

/* A caller that repeats the call while the first one still waits for the disk waits for it too. */
static void join(Drain *drain, VarlinkCall *call) {
  if (drain_has_begun(drain) || drain_is_over(drain))
    watch(drain, call);
  else
    save_and(drain, call, on_begun);
}

/* True: the call was answered, since it asks for the existing drain or conflicts with it. */
static bool answer_known(const Drain *asked, VarlinkCall *call, Drain *there) {
  bool same_key = there && asked->request_key && g_strcmp0(asked->request_key, there->request_key) == 0;
  bool same = there && g_strcmp0(asked->digest, there->digest) == 0;

  if (same_key && !same) {
    reply_error(call, "RequestKeyConflict",
                json_pack("{ss ss}", "request_key", asked->request_key, "job", there->id));
    return true;
  }
  if (same_key ||
      (there && !drain_is_over(there) && same && !asked->request_key && there->state != DRAIN_STOPPING)) {
    join(there, call);
    return true;
  }
  if (there && !drain_is_over(there)) {
    refuse_busy(call, there);
    return true;
  }
  return false;
}

static void say_started(const Drain *drain) {
  g_autoptr(GString) names = g_string_new(NULL);

  for (guint i = 0; i < drain->targets->len; i++)
    g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", drain_target_label(drain->targets->pdata[i]));
  log_message(LOG_NOTICE, NAMES_MESSAGE_DRAIN_STARTED, (const LogField[]){{NAMES_FIELD_DRAIN_ID, drain->id}},
              1, "draining this node to %s, requested by %s", names->str, drain->by);
}

void drain_answer_begin(Drains *drains, VarlinkCall *call, json_t *parameters) {
  Drain *drain = drain_new(drains);

  drain->caller = caller_new(varlink_call_get_peer(call));
  drain->by = caller_describe(drain->caller);
  if (!take_request_key(drain, call, parameters) || answer_known(drain, call, drains->drain) ||
      !take_targets(drain, call, json_object_get(parameters, "targets")) ||
      !take_goals(drain, call, parameters)) {
    drain_free(drain);
    return;
  }
  drain_free(drains->drain);
  drains->drain = drain;
  say_started(drain);
  cordon_for_drain(drains->node, drain->by);
  /* Records are written in the order in which they are queued, so the cordon's comes first. */
  save_and(drain, call, on_begun);
}

/* --- WatchDrain, AbortDrain --- */

void drain_answer_watch(Drains *drains, VarlinkCall *call) {
  if (drains->drain)
    watch(drains->drain, call);
  else
    reply_error(call, "NoDrain", NULL);
}

static void on_abort_saved(const char *id, const GError *error, gpointer user_data) {
  DrainSaved *saved = user_data;
  g_autoptr(VarlinkCall) call = saved->call;
  Drain *drain = drain_of(saved);

  if (error)
    reply_error(call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else if (drain)
    varlink_call_reply(call, json_pack("{so}", "drain", drain_status_to_json(drain)), false);
  else
    reply_error(call, "NoDrain", NULL);
  g_free(saved);
}

void drain_answer_abort(Drains *drains, VarlinkCall *call) {
  Drain *drain = drains->drain;

  if (!drain) {
    reply_error(call, "NoDrain", NULL);
    return;
  }
  if (!drain_is_over(drain) && drain->state != DRAIN_STOPPING) {
    drain->aborter = caller_new(varlink_call_get_peer(call));
    drain->aborted_by = caller_describe(drain->aborter);
    drain->state = DRAIN_STOPPING;
    drain->revision++;
    log_message(LOG_NOTICE, NAMES_MESSAGE_DRAIN_STOPPING,
                (const LogField[]){{NAMES_FIELD_DRAIN_ID, drain->id}}, 1,
                "drain aborted by %s: no more migrations start, those under way continue", drain->aborted_by);
    drain_abort_jobs(drain);
    drain_step_soon(drain);
  }
  save_and(drain, call, on_abort_saved);
}
