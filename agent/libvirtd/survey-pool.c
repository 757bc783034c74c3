/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks on request, on a few threads of their own, so that targets that do not answer do not delay lookups at this node's
 * libvirtd (lookup.c). */
#include "agent/libvirtd/survey-pool.h"

#include "agent/base/workpool.h"

#define THREADS     16
#define WAITING_MAX 1024
/* Less than clients wait: handoffctl gives up after 30 s. A check takes milliseconds, or seconds if the target's libvirtd probes its
 * QEMU for the first time. */
#define LIMIT_MAX_MS 25000

struct SurveyPool {
  MigDriver *driver;
  Hypervisor *hypervisor;
  unsigned connect_timeout_ms;
  WorkPool *pool;
};

typedef struct Request {
  MigDriver *driver;
  Hypervisor *hypervisor;
  unsigned connect_timeout_ms, limit_ms;
  char *domain, *target_uri;
  SurveyPoolFunc done;
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
  survey_ask(request->survey, request->driver, request->hypervisor, request->domain, request->target_uri,
             request->connect_timeout_ms, &request->error);
}

/* The target hangs, or the source, or earlier checks hold all threads. */
static void answer_late(Request *request) {
  g_autofree char *late = g_strdup_printf("no answer within %.3g s", request->limit_ms / 1000.0);
  g_autoptr(GError) error = NULL;
  MigCheckInput input = {.target_uri = request->target_uri};

  if (g_atomic_int_get(&request->survey->have_source)) {
    survey_fill_late(request->survey, late, &input);
    request->done(&input, NULL, request->user_data);
    return;
  }
  if (g_atomic_int_get(&request->begun))
    g_set_error(&error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT, "%s", late);
  else
    g_set_error(&error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                "not checked within %.3g s: %d checks of targets that do not answer come first",
                request->limit_ms / 1000.0, THREADS);
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

SurveyPool *survey_pool_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context,
                            unsigned connect_timeout_ms) {
  static const WorkOps ops = {request_run, request_done, request_free};
  SurveyPool *checker = g_new0(SurveyPool, 1);

  checker->driver = driver;
  checker->hypervisor = hypervisor_ref(hypervisor);
  checker->connect_timeout_ms = connect_timeout_ms;
  checker->pool = work_pool_new(&ops, context, THREADS, WAITING_MAX);
  return checker;
}

void survey_pool_free(SurveyPool *checker) {
  if (!checker)
    return;
  work_pool_free(checker->pool);
  hypervisor_unref(checker->hypervisor);
  g_free(checker);
}

void survey_pool_ask(SurveyPool *checker, const char *domain, const char *target_uri, unsigned limit_ms,
                     SurveyPoolFunc done, gpointer user_data) {
  g_autoptr(GError) error = NULL;
  Request *request = g_new0(Request, 1);

  request->driver = checker->driver;
  request->hypervisor = hypervisor_ref(checker->hypervisor);
  request->connect_timeout_ms = checker->connect_timeout_ms;
  request->limit_ms = MIN(limit_ms, LIMIT_MAX_MS);
  request->domain = g_strdup(domain);
  request->target_uri = g_strdup(target_uri);
  request->done = done;
  request->user_data = user_data;
  request->survey = survey_new();
  if (work_pool_start(checker->pool, request, request->limit_ms, &error))
    return;
  request_free(request);
  done(NULL, error, user_data);
}
