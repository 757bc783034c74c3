/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Gathers the facts for the checks before a migration, on a thread.
 *
 * Theory of Operation. The questions to the target depend on what the source says about the domain, but connecting takes
 * longest: TCP, TLS, ssh, or an address where nobody answers. So a thread of its own, an *opening*, connects while this one
 * asks the source. An opening that nobody needs any more (the source has no such domain) closes its connection. It holds a
 * reference to the hypervisor, so that at its end the agent knows that a thread is still in the driver.
 *
 * Locks: an opening's `mutex` guards conn, error, ended and unwanted; not held over calls. */
#include "agent/libvirtd/survey.h"

typedef struct Opening {
  gint refs;
  Hypervisor *hypervisor;
  char *uri;
  unsigned timeout_ms;
  GMutex mutex;
  GCond cond;
  bool here; /* no thread could be started: the waiting side opens it */
  bool ended, unwanted;
  MigConn *conn;
  GError *error;
} Opening;

static void opening_unref(Opening *opening) {
  if (!g_atomic_int_dec_and_test(&opening->refs))
    return;
  hypervisor_unref(opening->hypervisor);
  g_clear_error(&opening->error);
  g_mutex_clear(&opening->mutex);
  g_cond_clear(&opening->cond);
  g_free(opening->uri);
  g_free(opening);
}

static gpointer opening_thread(gpointer data) {
  Opening *opening = data;
  MigDriver *driver = hypervisor_get_driver(opening->hypervisor);
  GError *error = NULL;
  MigConn *conn = driver->ops->open(driver, opening->uri, opening->timeout_ms, NULL, NULL, &error);

  g_mutex_lock(&opening->mutex);
  opening->ended = true;
  opening->error = error;
  if (!opening->unwanted)
    opening->conn = g_steal_pointer(&conn);
  g_cond_broadcast(&opening->cond);
  g_mutex_unlock(&opening->mutex);
  if (conn)
    driver->ops->close(conn);
  opening_unref(opening);
  return NULL;
}

static Opening *opening_start(Hypervisor *hypervisor, const char *uri, unsigned timeout_ms) {
  Opening *opening = g_new0(Opening, 1);
  GThread *thread;

  opening->refs = 2;
  opening->hypervisor = hypervisor_ref(hypervisor);
  opening->uri = g_strdup(uri);
  opening->timeout_ms = timeout_ms;
  g_mutex_init(&opening->mutex);
  g_cond_init(&opening->cond);
  thread = g_thread_try_new("open-target", opening_thread, opening, NULL);
  opening->here = !thread;
  if (thread)
    g_thread_unref(thread);
  return opening;
}

/* Waits for it; the driver limits the time. Takes the opening. */
static MigConn *opening_finish(Opening *opening, GError **error) {
  MigConn *conn;

  if (opening->here)
    opening_thread(opening);
  g_mutex_lock(&opening->mutex);
  while (!opening->ended)
    g_cond_wait(&opening->cond, &opening->mutex);
  conn = g_steal_pointer(&opening->conn);
  if (!conn)
    g_propagate_error(error, g_steal_pointer(&opening->error));
  g_mutex_unlock(&opening->mutex);
  opening_unref(opening);
  return conn;
}

/* Takes the opening. */
static void opening_forget(Opening *opening) {
  MigConn *conn;

  g_mutex_lock(&opening->mutex);
  opening->unwanted = true;
  conn = g_steal_pointer(&opening->conn);
  g_mutex_unlock(&opening->mutex);
  if (conn)
    hypervisor_get_driver(opening->hypervisor)->ops->close(conn);
  if (opening->here)
    opening_unref(opening);
  opening_unref(opening);
}

/* --- both ends --- */

Survey *survey_new(void) {
  return g_new0(Survey, 1);
}

void survey_free(Survey *survey) {
  if (!survey)
    return;
  mig_host_facts_clear(&survey->source);
  mig_domain_facts_clear(&survey->domain);
  mig_target_facts_clear(&survey->target);
  g_clear_error(&survey->target_error);
  g_free(survey);
}

static bool ask_source(Survey *survey, Hypervisor *hypervisor, const char *domain,
                       unsigned connect_timeout_ms, GError **error) {
  HypervisorConn *conn = hypervisor_acquire(hypervisor, connect_timeout_ms, error);
  const MigDriverOps *ops = hypervisor_get_driver(hypervisor)->ops;
  GError *failure = NULL;
  bool ok;

  if (!conn)
    return false;
  ok = ops->host_facts(conn->conn, &survey->source, &failure) &&
       ops->survey_domain(conn->conn, domain, &survey->domain, &failure);
  hypervisor_release(conn, failure);
  if (!ok)
    g_propagate_error(error, failure);
  return ok;
}

bool survey_ask(Survey *survey, Hypervisor *hypervisor, const char *domain, const char *target_uri,
                unsigned connect_timeout_ms, GError **error) {
  Opening *opening = opening_start(hypervisor, target_uri, connect_timeout_ms);
  const MigDriverOps *ops = hypervisor_get_driver(hypervisor)->ops;
  MigConn *conn;

  if (!ask_source(survey, hypervisor, domain, connect_timeout_ms, error)) {
    opening_forget(opening);
    return false;
  }
  g_atomic_int_set(&survey->have_source, 1);
  conn = opening_finish(opening, &survey->target_error);
  if (!conn)
    return true;
  survey->have_target =
      ops->survey_target(conn, &survey->domain, &survey->source, &survey->target, &survey->target_error);
  ops->close(conn);
  return true;
}

static bool is_away(const GError *error) {
  return g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE) ||
         g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT);
}

void survey_fill(const Survey *survey, MigCheckInput *input) {
  input->domain = &survey->domain;
  input->source = &survey->source;
  input->target = survey->have_target ? &survey->target : NULL;
  input->target_error = survey->target_error ? survey->target_error->message : NULL;
  input->target_away = is_away(survey->target_error);
}

/* The same if the target still has not answered; `late` says so in words. */
static void fill_late(const Survey *survey, const char *late, MigCheckInput *input) {
  input->domain = &survey->domain;
  input->source = &survey->source;
  input->target = NULL;
  input->target_error = late;
  input->target_away = true;
}

/* --- on request --- */

/* Less than clients wait: handoffctl gives up after 30 s. A check takes milliseconds, or seconds if the target's libvirtd probes its
 * QEMU for the first time. */
#define LIMIT_MAX_MS 25000

typedef struct Request {
  Hypervisor *hypervisor;
  unsigned connect_timeout_ms, limit_ms;
  char *domain, *target_uri;
  SurveyFunc done;
  gpointer user_data;
  gint begun; /* atomic */
  Survey *survey;
  GError *error; /* set by the thread: the source's */
} Request;

static void request_free(gpointer data) {
  Request *request = data;

  survey_free(request->survey);
  hypervisor_unref(request->hypervisor);
  g_clear_error(&request->error);
  g_free(request->domain);
  g_free(request->target_uri);
  g_free(request);
}

static void request_run(gpointer data) {
  Request *request = data;

  g_atomic_int_set(&request->begun, 1);
  survey_ask(request->survey, request->hypervisor, request->domain, request->target_uri,
             request->connect_timeout_ms, &request->error);
}

/* The target hangs, or the source, or earlier checks hold all threads. */
static void answer_late(Request *request) {
  g_autofree char *late = g_strdup_printf("no answer within %.3g s", request->limit_ms / 1000.0);
  g_autoptr(GError) error = NULL;
  MigCheckInput input = {.target_uri = request->target_uri};

  if (g_atomic_int_get(&request->survey->have_source)) {
    fill_late(request->survey, late, &input);
    request->done(&input, NULL, request->user_data);
    return;
  }
  if (g_atomic_int_get(&request->begun))
    g_set_error(&error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "%s", late);
  else
    g_set_error(&error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                "not checked within %.3g s: %d checks of targets that do not answer come first",
                request->limit_ms / 1000.0, SURVEY_THREADS);
  request->done(NULL, error, request->user_data);
}

static void request_done(gpointer data, WorkEnd end) {
  Request *request = data;
  g_autoptr(GError) error = NULL;
  MigCheckInput input = {.target_uri = request->target_uri};

  switch (end) {
  case WORK_ANSWERED:
    if (!request->error)
      survey_fill(request->survey, &input);
    request->done(request->error ? NULL : &input, request->error, request->user_data);
    return;
  case WORK_LATE:
    answer_late(request);
    return;
  case WORK_CANCELLED:
    error = g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the agent is shutting down");
    request->done(NULL, error, request->user_data);
    return;
  }
}

void survey_call(LocalCalls *calls, const char *domain, const char *target_uri, unsigned limit_ms,
                 SurveyFunc done, gpointer user_data) {
  static const WorkOps ops = {request_run, request_done, request_free};
  g_autoptr(GError) error = NULL;
  Request *request = g_new0(Request, 1);

  request->hypervisor = hypervisor_ref(calls->hypervisor);
  request->connect_timeout_ms = calls->timeout_ms;
  request->limit_ms = MIN(limit_ms, LIMIT_MAX_MS);
  request->domain = g_strdup(domain);
  request->target_uri = g_strdup(target_uri);
  request->done = done;
  request->user_data = user_data;
  request->survey = survey_new();
  if (work_pool_start(calls->pool, &ops, request, request->limit_ms, &error))
    return;
  request_free(request);
  done(NULL, error, user_data);
}
