/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reloads the configuration of a running agent.
 *
 * Theory of Operation. Everybody reads settings from the one Config when needed, and keeps no pointer into it beyond a call.
 * The struct stays, its contents are exchanged. What the queue, the shares of the bandwidth and the timer of the watchers
 * derive from settings is derived again.
 *
 * At startup an invalid line is skipped, since an agent with a default is better than none. Here there is something better
 * than a default: the old configuration. So one invalid line keeps all of it. */
#include "agent/daemon/reload.h"

#include "agent/job/log.h"
#include "agent/move/admit.h"
#include "agent/move/bandwidth.h"

static void exchange(Config *a, Config *b) {
  Config kept = *a;

  *a = *b;
  *b = kept;
}

static void keep_old(const Config *bad) {
  for (guint i = 0; i < bad->warnings->len; i++)
    log_message(LOG_ERR, NAMES_MESSAGE_CONFIG_KEPT, NULL, 0, "%s", (const char *)bad->warnings->pdata[i]);
  log_message(LOG_ERR, NAMES_MESSAGE_CONFIG_KEPT, NULL, 0,
              "keeping all of the old configuration: fix these errors and reload again");
}

/* Open connections were made with it. */
static void keep_connect_timeout(const Config *now, Config *next) {
  if (next->connect_timeout_ms == now->connect_timeout_ms)
    return;
  log_message(LOG_NOTICE, NULL, NULL, 0,
              "the new ConnectTimeout= takes effect when the agent restarts, not before");
  next->connect_timeout_ms = now->connect_timeout_ms;
}

bool reload_config(Agent *agent, const char *path) {
  g_autoptr(GError) error = NULL;
  g_autoptr(Config) config = config_load(path, &error);

  if (!config) {
    log_message(LOG_ERR, NAMES_MESSAGE_CONFIG_KEPT, NULL, 0, "keeping the old configuration: %s",
                error->message);
    return false;
  }
  if (config->warnings->len > 0) {
    keep_old(config);
    return false;
  }
  keep_connect_timeout(agent->config, config);
  exchange(agent->config, config);
  agent_apply_config(agent);
  job_queue_apply_config(agent->jobs.queue);
  bandwidth_apply_config(&agent->mover);
  log_message(LOG_INFO, NAMES_MESSAGE_CONFIG_RELOADED, NULL, 0,
              "configuration reloaded: %u targets, %u policies, at most %u migrations at a time",
              agent->config->targets->len, agent->config->policies->len, agent->config->max_outgoing);
  admit_jobs(&agent->mover);
  return true;
}
