/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of the methods of io.handoffd.Agent, and who may call them. A method of the interface that is not in the table
 * answers MethodNotImplemented. */
#include "agent/method/methods.h"

#include "agent/base/clock.h"
#include "agent/job/jobjson.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/move/incoming.h"
#include "agent/move/lifecycle.h"
#include "agent/request/access.h"
#include "agent/request/view.h"
#include "agent/request/watch.h"
#include "proto/interface.h"

#include <inttypes.h>
#include <string.h>

/* --- the table --- */

static const VarlinkMethod table[] = {
    {"Start", methods_start, false},
    {"Prepare", methods_prepare, false},
    {"Release", methods_release, false},
    {"Get", methods_get, false},
    {"List", methods_list, false},
    {"Watch", methods_watch, true},
    {"Complete", methods_complete, false},
    {"Settle", methods_settle, false},
    {"Check", methods_check, false},
    {"Forecast", methods_forecast, false},
    {"GetPolicy", methods_get_policy, false},
    {"Cordon", methods_cordon, false},
    {"Uncordon", methods_uncordon, false},
    {"Drain", methods_drain, true},
    {"WatchDrain", methods_watch_drain, true},
    {"AbortDrain", methods_abort_drain, false},
    {"Abort", methods_abort, false},
    {"Tune", methods_tune, false},
    {"GetNode", methods_get_node, false},
    {"GetHistory", methods_get_history, false},
    {"GetMetrics", methods_get_metrics, false},
    {"Evaluate", methods_evaluate, false},
};

/* Logs a denied call, unless there were many. */
static void tell_denial(Methods *methods, const VarlinkPeer *peer, const char *method) {
  unsigned untold;
  bool tell = denials_note(methods->requests->denials, peer->uid, clock_now_ms(), &untold);

  if (untold > 0)
    log_message(LOG_NOTICE, NAMES_MESSAGE_ACCESS_DENIED, NULL, 0,
                "denied %u more calls by unauthorized users, not logged one by one", untold);
  if (!tell)
    return;

  g_autofree char *uid = g_strdup_printf("%u", (unsigned)peer->uid);
  g_autofree char *pid = g_strdup_printf("%d", (int)peer->pid);
  const LogField fields[] = {
      {NAMES_FIELD_METHOD, method}, {NAMES_FIELD_PEER_UID, uid}, {NAMES_FIELD_PEER_PID, pid}};

  log_message(LOG_NOTICE, NAMES_MESSAGE_ACCESS_DENIED, fields, G_N_ELEMENTS(fields),
              "uid %s (pid %s) may not call %s: neither root nor in group %s", uid, pid, method,
              methods->config->group);
}

static bool authorize(const VarlinkPeer *peer, const char *method, gpointer user_data) {
  Methods *methods = user_data;

  if (access_allowed(peer, method, methods->config->public_read, methods->requests->group_gid))
    return true;
  tell_denial(methods, peer, method);
  return false;
}

static VarlinkTrust trust(const VarlinkPeer *peer, gpointer user_data) {
  const Methods *methods = user_data;

  return access_is_trusted(peer, methods->requests->group_gid) ? VARLINK_TRUSTED : VARLINK_STRANGER;
}

bool methods_register(Methods *methods, GError **error) {
  varlink_server_set_authorize(methods->requests->server, authorize, methods);
  varlink_server_set_trust(methods->requests->server, trust, methods);
  return varlink_server_add_interface(methods->requests->server, io_handoffd_Agent_varlink, table,
                                      G_N_ELEMENTS(table), methods, error);
}
