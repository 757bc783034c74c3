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
  MigDriver *driver;
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
  const MigDriverOps *ops = opening->driver->ops;
  GError *error = NULL;
  MigConn *conn = ops->open(opening->driver, opening->uri, opening->timeout_ms, NULL, NULL, &error);

  g_mutex_lock(&opening->mutex);
  opening->ended = true;
  opening->error = error;
  if (!opening->unwanted)
    opening->conn = g_steal_pointer(&conn);
  g_cond_broadcast(&opening->cond);
  g_mutex_unlock(&opening->mutex);
  if (conn)
    ops->close(conn);
  opening_unref(opening);
  return NULL;
}

static Opening *opening_start(MigDriver *driver, Hypervisor *hypervisor, const char *uri,
                              unsigned timeout_ms) {
  Opening *opening = g_new0(Opening, 1);
  GThread *thread;

  opening->refs = 2;
  opening->driver = driver;
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
    opening->driver->ops->close(conn);
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

static bool ask_source(Survey *survey, MigDriver *driver, Hypervisor *hypervisor, const char *domain,
                       unsigned connect_timeout_ms, GError **error) {
  HypervisorConn *conn = hypervisor_acquire(hypervisor, connect_timeout_ms, error);
  const MigDriverOps *ops = driver->ops;
  GError *failure = NULL;
  bool ok;

  if (!conn)
    return false;
  ok = ops->host_facts(hypervisor_conn_get(conn), &survey->source, &failure) &&
       ops->survey_domain(hypervisor_conn_get(conn), domain, &survey->domain, &failure);
  hypervisor_release(conn, failure);
  if (!ok)
    g_propagate_error(error, failure);
  return ok;
}

bool survey_ask(Survey *survey, MigDriver *driver, Hypervisor *hypervisor, const char *domain,
                const char *target_uri, unsigned connect_timeout_ms, GError **error) {
  Opening *opening = opening_start(driver, hypervisor, target_uri, connect_timeout_ms);
  MigConn *conn;

  if (!ask_source(survey, driver, hypervisor, domain, connect_timeout_ms, error)) {
    opening_forget(opening);
    return false;
  }
  g_atomic_int_set(&survey->have_source, 1);
  conn = opening_finish(opening, &survey->target_error);
  if (!conn)
    return true;
  survey->have_target = driver->ops->survey_target(conn, &survey->domain, &survey->source, &survey->target,
                                                   &survey->target_error);
  driver->ops->close(conn);
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

void survey_fill_late(const Survey *survey, const char *late, MigCheckInput *input) {
  input->domain = &survey->domain;
  input->source = &survey->source;
  input->target = NULL;
  input->target_error = late;
  input->target_away = true;
}
