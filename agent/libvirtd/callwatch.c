/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A driver that wraps another one and knows which calls are in progress.
 *
 * Theory of Operation. A thread stuck in a call to a hung libvirtd cannot report anything. So each thread signs in before a call
 * and out after it, and anyone may look at those still in. All threads go through here, including those left behind by the
 * code that started them, because the agent has no other driver. Each call may take as long as a healthy libvirtd needs, and
 * then some (`calls`); the migration itself may take forever.
 *
 * Locks: `mutex` guards `out`; not held over calls. A call's entry lives on its thread's stack. */
#include "agent/libvirtd/callwatch.h"

#include "agent/base/clock.h"
#define USUAL_MS   5000
#define PATIENT_MS 30000
#define FOR_EVER   UINT64_MAX

typedef enum CallKind {
  CALL_OPEN,
  CALL_REACHABLE,
  CALL_HOST_FACTS,
  CALL_LIST_ACTIVE,
  CALL_DOMAIN_FACTS,
  CALL_SURVEY_DOMAIN,
  CALL_SURVEY_TARGET,
  CALL_DEFINITIONS,
  CALL_DOMAIN_STATUS,
  CALL_PROBE,
  CALL_WRITE_PROFILE,
  CALL_MIGRATE,
  CALL_JOB_STATS,
  CALL_FINAL_STATS,
  CALL_ABORT,
  CALL_SET_DOWNTIME,
  CALL_SET_BANDWIDTH,
  CALL_START_POST_COPY,
  CALL_SUSPEND,
  CALL_RESUME,
  CALL_UNDEFINE,
  CALL_MAKE_IMAGE,
  CALL_REMOVE_IMAGE,
  CALL_COUNT
} CallKind;

static const struct {
  const char *what;
  uint64_t limit_ms; /* the caller's own timeout is added */
} calls[] = {
    [CALL_OPEN] = {"opening the connection", USUAL_MS},
    [CALL_REACHABLE] = {"testing the network path", USUAL_MS},
    [CALL_HOST_FACTS] = {"reading the host's facts", USUAL_MS},
    [CALL_LIST_ACTIVE] = {"listing the active domains", USUAL_MS},
    [CALL_DOMAIN_FACTS] = {"looking up the domain", USUAL_MS},
    [CALL_SURVEY_DOMAIN] = {"reading the domain's details", USUAL_MS},
    /* libvirtd probes the emulator the first time. */
    [CALL_SURVEY_TARGET] = {"checking the target", PATIENT_MS},
    [CALL_DEFINITIONS] = {"reading the domain's definition", USUAL_MS},
    [CALL_DOMAIN_STATUS] = {"reading the domain's state", USUAL_MS},
    [CALL_PROBE] = {"measuring the dirty rate", USUAL_MS},
    [CALL_WRITE_PROFILE] = {"noting the dirty rate", USUAL_MS},
    [CALL_MIGRATE] = {"migrating the domain", FOR_EVER},
    [CALL_JOB_STATS] = {"reading the migration's statistics", USUAL_MS},
    [CALL_FINAL_STATS] = {"reading the migration's final statistics", USUAL_MS},
    [CALL_ABORT] = {"aborting the migration", USUAL_MS},
    [CALL_SET_DOWNTIME] = {"setting the downtime limit", USUAL_MS},
    [CALL_SET_BANDWIDTH] = {"setting the bandwidth limit", USUAL_MS},
    [CALL_START_POST_COPY] = {"starting post-copy", USUAL_MS},
    [CALL_SUSPEND] = {"pausing the guest", USUAL_MS},
    [CALL_RESUME] = {"resuming the guest", USUAL_MS},
    [CALL_UNDEFINE] = {"removing the definition", USUAL_MS},
    [CALL_MAKE_IMAGE] = {"creating a disk image", PATIENT_MS},
    [CALL_REMOVE_IMAGE] = {"removing a disk image", PATIENT_MS},
};
G_STATIC_ASSERT(G_N_ELEMENTS(calls) == CALL_COUNT);

typedef struct CallWatch {
  MigDriver base;
  MigDriver *inner;
  GMutex mutex;
  GQueue out; /* Call, oldest first */
} CallWatch;

/* What passes for a MigConn outside this file. */
typedef struct WatchedConn {
  CallWatch *watch;
  MigConn *inner;
  char *uri;
} WatchedConn;

typedef struct Call {
  CallWatch *watch;
  CallKind kind;
  const char *uri;   /* borrowed for the duration of the call */
  const char *about; /* likewise; or NULL */
  uint64_t since_ms;
  uint64_t limit_ms;
  GList link;
} Call;

static void sign_in(Call *call, uint64_t extra_ms) {
  uint64_t limit_ms = calls[call->kind].limit_ms;

  call->since_ms = clock_now_ms();
  call->limit_ms = limit_ms == FOR_EVER ? FOR_EVER : limit_ms + extra_ms;
  call->link.data = call;
  g_mutex_lock(&call->watch->mutex);
  g_queue_push_tail_link(&call->watch->out, &call->link);
  g_mutex_unlock(&call->watch->mutex);
}

static void sign_out(Call *call) {
  g_mutex_lock(&call->watch->mutex);
  g_queue_unlink(&call->watch->out, &call->link);
  g_mutex_unlock(&call->watch->mutex);
}

static WatchedConn *unwrap(MigConn *conn) {
  return (WatchedConn *)(void *)conn;
}

static const MigDriverOps *inner_ops(const WatchedConn *conn) {
  return conn->watch->inner->ops;
}

/* Declares `result`, the return value of the inner driver's function. */
#define WATCHED(type, kind_, about_, extra_ms, function, ...)                                                \
  WatchedConn *watched = unwrap(conn);                                                                       \
  Call call = {.watch = watched->watch, .kind = (kind_), .uri = watched->uri, .about = (about_)};            \
  type result;                                                                                               \
                                                                                                             \
  sign_in(&call, extra_ms);                                                                                  \
  result = inner_ops(watched)->function(watched->inner, __VA_ARGS__);                                        \
  sign_out(&call);                                                                                           \
  return result

/* --- connections --- */

static MigConn *watched_open(MigDriver *driver, const char *uri, unsigned timeout_ms, MigVirtEventFunc events,
                             gpointer user_data, GError **error) {
  CallWatch *watch = (CallWatch *)driver;
  Call call = {.watch = watch, .kind = CALL_OPEN, .uri = uri};
  WatchedConn *conn;
  MigConn *inner;

  sign_in(&call, timeout_ms);
  inner = watch->inner->ops->open(watch->inner, uri, timeout_ms, events, user_data, error);
  sign_out(&call);
  if (!inner)
    return NULL;
  conn = g_new0(WatchedConn, 1);
  conn->watch = watch;
  conn->inner = inner;
  conn->uri = g_strdup(uri);
  return (MigConn *)(void *)conn;
}

static void watched_prefer(MigDriver *driver, const char *own_uri, const char *const *uris) {
  MigDriver *inner = ((CallWatch *)driver)->inner;

  if (inner->ops->prefer)
    inner->ops->prefer(inner, own_uri, uris);
}

static void watched_close(MigConn *conn) {
  WatchedConn *watched = unwrap(conn);

  inner_ops(watched)->close(watched->inner);
  g_free(watched->uri);
  g_free(watched);
}

static bool watched_is_alive(MigConn *conn) {
  WatchedConn *watched = unwrap(conn);

  return inner_ops(watched)->is_alive(watched->inner);
}

static bool watched_reachable(MigDriver *driver, const char *uri, unsigned timeout_ms, GError **error) {
  CallWatch *watch = (CallWatch *)driver;
  Call call = {.watch = watch, .kind = CALL_REACHABLE, .uri = uri};
  bool ok;

  sign_in(&call, timeout_ms);
  ok = watch->inner->ops->reachable(watch->inner, uri, timeout_ms, error);
  sign_out(&call);
  return ok;
}

/* --- questions --- */

static bool watched_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error) {
  WATCHED(bool, CALL_HOST_FACTS, NULL, 0, host_facts, ret_facts, error);
}

static GPtrArray *watched_list_active(MigConn *conn, GError **error) {
  WATCHED(GPtrArray *, CALL_LIST_ACTIVE, NULL, 0, list_active, error);
}

static bool watched_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                                 GError **error) {
  WATCHED(bool, CALL_DOMAIN_FACTS, name_or_uuid, 0, domain_facts, name_or_uuid, ret_facts, error);
}

static bool watched_survey_domain(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                                  GError **error) {
  WATCHED(bool, CALL_SURVEY_DOMAIN, name_or_uuid, 0, survey_domain, name_or_uuid, ret_facts, error);
}

static bool watched_survey_target(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                                  MigTargetFacts *ret_facts, GError **error) {
  WATCHED(bool, CALL_SURVEY_TARGET, domain->uuid, 0, survey_target, domain, source, ret_facts, error);
}

static bool watched_definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                                GError **error) {
  WATCHED(bool, CALL_DEFINITIONS, name_or_uuid, 0, definitions, name_or_uuid, ret_definitions, error);
}

static bool watched_domain_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status,
                                  GError **error) {
  WATCHED(bool, CALL_DOMAIN_STATUS, uuid, 0, domain_status, uuid, ret_status, error);
}

static bool watched_probe_dirty_rate(MigConn *conn, const char *uuid, unsigned seconds, MigProbe *probe,
                                     GError **error) {
  WATCHED(bool, CALL_PROBE, uuid, seconds *UINT64_C(1000), probe_dirty_rate, uuid, seconds, probe, error);
}

static bool watched_write_profile(MigConn *conn, const char *uuid, const MigProfile *profile,
                                  GError **error) {
  WATCHED(bool, CALL_WRITE_PROFILE, uuid, 0, write_profile, uuid, profile, error);
}

static bool watched_job_stats(MigConn *conn, const char *uuid, MigVcpus *vcpus, MigSample *ret_sample,
                              GError **error) {
  WATCHED(bool, CALL_JOB_STATS, uuid, 0, job_stats, uuid, vcpus, ret_sample, error);
}

static bool watched_final_stats(MigConn *conn, const char *uuid, MigFinalStats *ret_stats, GError **error) {
  WATCHED(bool, CALL_FINAL_STATS, uuid, 0, final_stats, uuid, ret_stats, error);
}

/* --- actions --- */

static bool watched_migrate(MigConn *conn, const MigMigrateRequest *request, GError **error) {
  WATCHED(bool, CALL_MIGRATE, request->uuid, 0, migrate, request, error);
}

static bool watched_abort_job(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_ABORT, uuid, 0, abort_job, uuid, guard, error);
}

static bool watched_set_max_downtime(MigConn *conn, const char *uuid, uint64_t downtime_ms,
                                     const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_SET_DOWNTIME, uuid, 0, set_max_downtime, uuid, downtime_ms, guard, error);
}

static bool watched_set_bandwidth(MigConn *conn, const char *uuid, uint64_t bytes_per_s, bool post_copy,
                                  const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_SET_BANDWIDTH, uuid, 0, set_bandwidth, uuid, bytes_per_s, post_copy, guard, error);
}

static bool watched_start_post_copy(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_START_POST_COPY, uuid, 0, start_post_copy, uuid, guard, error);
}

static bool watched_suspend(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_SUSPEND, uuid, 0, suspend, uuid, guard, error);
}

static bool watched_resume(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_RESUME, uuid, 0, resume, uuid, guard, error);
}

static bool watched_undefine(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  WATCHED(bool, CALL_UNDEFINE, uuid, 0, undefine, uuid, guard, error);
}

static bool watched_make_image(MigConn *conn, const MigImage *image, MigImageStamp *ret_stamp,
                               GError **error) {
  WATCHED(bool, CALL_MAKE_IMAGE, NULL, 0, make_image, image, ret_stamp, error);
}

static bool watched_remove_image(MigConn *conn, const MigImage *image, const MigImageGuard *guard,
                                 GError **error) {
  WATCHED(bool, CALL_REMOVE_IMAGE, NULL, 0, remove_image, image, guard, error);
}

/* --- the driver --- */

static void watched_free(MigDriver *driver) {
  CallWatch *watch = (CallWatch *)driver;

  mig_driver_free(watch->inner);
  g_mutex_clear(&watch->mutex);
  g_free(watch);
}

static const MigDriverOps ops = {
    .name = "watched",
    .prefer = watched_prefer,
    .open = watched_open,
    .close = watched_close,
    .is_alive = watched_is_alive,
    .reachable = watched_reachable,
    .host_facts = watched_host_facts,
    .list_active = watched_list_active,
    .domain_facts = watched_domain_facts,
    .survey_domain = watched_survey_domain,
    .survey_target = watched_survey_target,
    .definitions = watched_definitions,
    .domain_status = watched_domain_status,
    .probe_dirty_rate = watched_probe_dirty_rate,
    .write_profile = watched_write_profile,
    .migrate = watched_migrate,
    .job_stats = watched_job_stats,
    .final_stats = watched_final_stats,
    .abort_job = watched_abort_job,
    .set_max_downtime = watched_set_max_downtime,
    .set_bandwidth = watched_set_bandwidth,
    .start_post_copy = watched_start_post_copy,
    .suspend = watched_suspend,
    .resume = watched_resume,
    .undefine = watched_undefine,
    .make_image = watched_make_image,
    .remove_image = watched_remove_image,
    .free = watched_free,
};
/* A new function in driver.h needs a row above, and a limit: then adjust this count. */
G_STATIC_ASSERT(sizeof ops == 28 * sizeof(void *));

MigDriver *call_watch_new(MigDriver *inner) {
  CallWatch *watch = g_new0(CallWatch, 1);

  watch->base.ops = &ops;
  watch->inner = inner;
  g_mutex_init(&watch->mutex);
  g_queue_init(&watch->out);
  return &watch->base;
}

static void late_free(gpointer data) {
  CallWatchLate *late = data;

  g_free(late->uri);
  g_free(late->about);
  g_free(late);
}

GPtrArray *call_watch_list_late(MigDriver *driver, uint64_t now_ms) {
  GPtrArray *list = g_ptr_array_new_with_free_func(late_free);
  CallWatch *watch = (CallWatch *)driver;

  g_mutex_lock(&watch->mutex);
  for (GList *link = watch->out.head; link; link = link->next) {
    const Call *call = link->data;
    CallWatchLate *late;

    if (now_ms < call->since_ms || now_ms - call->since_ms < call->limit_ms)
      continue;
    late = g_new0(CallWatchLate, 1);
    late->what = calls[call->kind].what;
    late->uri = g_strdup(call->uri);
    late->about = g_strdup(call->about);
    late->since_ms = call->since_ms;
    g_ptr_array_add(list, late);
  }
  g_mutex_unlock(&watch->mutex);
  return list;
}
