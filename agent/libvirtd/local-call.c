/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls to this node's libvirtd: work for a pool (workpool.c), with the node's connection. */
#include "agent/libvirtd/local-call.h"

#define WAITING_MAX 1024

typedef struct Request {
  Hypervisor *hypervisor;
  unsigned connect_ms; /* to wait for a connection */
  unsigned timeout_ms; /* in total */
  LocalCall call;      /* its task and the error belong to the thread until it is done */
  GError *error;
  LocalCallDoneFunc done;
  gpointer user_data;
} Request;

static void request_free(gpointer data) {
  Request *request = data;

  if (request->call.free_task)
    request->call.free_task(request->call.task);
  g_clear_error(&request->error);
  hypervisor_unref(request->hypervisor);
  g_free(request);
}

static void request_run(gpointer data) {
  Request *request = data;
  HypervisorConn *conn = hypervisor_acquire(request->hypervisor, request->connect_ms, &request->error);

  if (!conn)
    return;
  if (request->call.serial > 0 && request->call.serial != conn->serial) {
    g_set_error(&request->error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED,
                "the connection to this node's libvirtd broke; events may have been missed");
    hypervisor_release(conn, NULL);
    return;
  }
  request->call.run(hypervisor_get_driver(request->hypervisor), conn->conn, request->call.task,
                    &request->error);
  hypervisor_release(conn, request->error);
}

static GError *error_of_end(const Request *request, WorkEnd end) {
  if (end == WORK_CANCELLED)
    return g_error_new(MIG_VIRT_ERROR, MIG_VIRT_ERROR_UNREACHABLE, "the agent is shutting down");
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
    request->done(request->error ? NULL : request->call.task, request->error, request->user_data);
}

LocalCalls *local_calls_new(Hypervisor *hypervisor, GMainContext *context, unsigned threads,
                            unsigned timeout_ms) {
  LocalCalls *local_calls = g_new0(LocalCalls, 1);

  local_calls->hypervisor = hypervisor_ref(hypervisor);
  local_calls->timeout_ms = timeout_ms;
  local_calls->pool = work_pool_new(context, threads, WAITING_MAX);
  return local_calls;
}

void local_calls_free(LocalCalls *local_calls) {
  if (!local_calls)
    return;
  work_pool_free(local_calls->pool);
  hypervisor_unref(local_calls->hypervisor);
  g_free(local_calls);
}

void local_calls_run(LocalCalls *local_calls, const LocalCall *call, LocalCallDoneFunc done,
                     gpointer user_data) {
  static const WorkOps ops = {request_run, request_done, request_free};
  g_autoptr(GError) error = NULL;
  Request *request = g_new0(Request, 1);

  request->hypervisor = hypervisor_ref(local_calls->hypervisor);
  request->connect_ms = local_calls->timeout_ms;
  request->timeout_ms = local_calls->timeout_ms + call->extra_ms;
  request->call = *call;
  request->done = done;
  request->user_data = user_data;
  if (work_pool_start(local_calls->pool, &ops, request, request->timeout_ms, &error))
    return;
  done(NULL, error, user_data);
  request_free(request);
}
