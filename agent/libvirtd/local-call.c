/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Questions to this node's libvirtd: work of a pool (workpool.c) that is given the node's connection. */
#include "agent/libvirtd/local-call.h"

#include "agent/base/workpool.h"

#define WAITING_MAX 1024

struct Errands {
  MigDriver *driver;
  Hypervisor *hypervisor;
  unsigned timeout_ms;
  WorkPool *pool;
};

typedef struct Request {
  MigDriver *driver;
  Hypervisor *hypervisor;
  unsigned connect_ms; /* so long it waits for a connection */
  unsigned timeout_ms; /* in all */
  Errand errand;       /* its task and the error are the thread's until it is done */
  GError *error;
  ErrandDoneFunc done;
  gpointer user_data;
} Request;

static void request_free(gpointer data) {
  Request *request = data;

  if (request->errand.free_task)
    request->errand.free_task(request->errand.task);
  g_clear_error(&request->error);
  hypervisor_unref(request->hypervisor);
  g_free(request);
}

static void request_run(gpointer data) {
  Request *request = data;
  HypervisorConn *conn = hypervisor_acquire(request->hypervisor, request->connect_ms, &request->error);

  if (!conn)
    return;
  if (request->errand.serial > 0 && request->errand.serial != hypervisor_conn_serial(conn)) {
    g_set_error(&request->error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                "the connection to this node's libvirtd broke, and what happened meanwhile is not known");
    hypervisor_release(conn, NULL);
    return;
  }
  request->errand.run(request->driver, hypervisor_conn_get(conn), request->errand.task, &request->error);
  hypervisor_release(conn, request->error);
}

static GError *error_of_end(const Request *request, WorkEnd end) {
  if (end == WORK_CANCELLED)
    return g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the agent ends");
  return g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
                     "this node's libvirtd (%s) did not answer within %.3g s",
                     hypervisor_get_uri(request->hypervisor), request->timeout_ms / 1000.0);
}

static void request_done(gpointer data, WorkEnd end) {
  Request *request = data;
  g_autoptr(GError) error = end == WORK_ANSWERED ? NULL : error_of_end(request, end);

  if (error)
    request->done(NULL, error, request->user_data);
  else
    request->done(request->error ? NULL : request->errand.task, request->error, request->user_data);
}

Errands *errands_new(MigDriver *driver, Hypervisor *hypervisor, GMainContext *context, unsigned threads,
                     unsigned timeout_ms) {
  static const WorkOps ops = {request_run, request_done, request_free};
  Errands *errands = g_new0(Errands, 1);

  errands->driver = driver;
  errands->hypervisor = hypervisor_ref(hypervisor);
  errands->timeout_ms = timeout_ms;
  errands->pool = work_pool_new(&ops, context, threads, WAITING_MAX);
  return errands;
}

void errands_free(Errands *errands) {
  if (!errands)
    return;
  work_pool_free(errands->pool);
  hypervisor_unref(errands->hypervisor);
  g_free(errands);
}

void errands_run(Errands *errands, const Errand *errand, ErrandDoneFunc done, gpointer user_data) {
  g_autoptr(GError) error = NULL;
  Request *request = g_new0(Request, 1);

  request->driver = errands->driver;
  request->hypervisor = hypervisor_ref(errands->hypervisor);
  request->connect_ms = errands->timeout_ms;
  request->timeout_ms = errands->timeout_ms + errand->extra_ms;
  request->errand = *errand;
  request->done = done;
  request->user_data = user_data;
  if (work_pool_start(errands->pool, request, request->timeout_ms, &error))
    return;
  done(NULL, error, user_data);
  request_free(request);
}
