/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The agent: puts its parts together and tears them down. */
#include "agent/daemon/agent.h"

#include "agent/base/clock.h"
#include "agent/job/jobrecord.h"
#include "agent/job/log.h"
#include "agent/job/recorder.h"
#include "agent/job/recordformat.h"
#include "agent/libvirtd/callwatch.h"
#include "agent/method/methods.h"
#include "agent/move/admit.h"
#include "agent/move/bandwidth.h"
#include "agent/move/hangs.h"
#include "agent/move/incoming.h"
#include "agent/move/lifecycle.h"
#include "agent/request/request-key.h"
#include "agent/request/watch.h"

#include <gio/gio.h>
#include <grp.h>
#include <string.h>

/* How late a deadline or a timeout may be noticed. */
#define TICK_MS 250

/* At most so many questions about incoming domains run at a time. */
#define LOCAL_CALL_THREADS 4

static char *read_boot_id(void) {
  char *text = NULL;

  if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &text, NULL, NULL))
    return g_strdup("unknown");
  return g_strstrip(text);
}

static gid_t find_group(const char *name) {
  struct group *group = getgrnam(name);

  return group ? group->gr_gid : (gid_t)-1;
}

static void on_hypervisor_state(Hypervisor *hypervisor, gpointer user_data) {
  const HypervisorState *state = hypervisor_get_state(hypervisor);
  Agent *agent = user_data;
  const LogField fields[] = {{NAMES_FIELD_LIBVIRT_URI, hypervisor_get_uri(hypervisor)}};

  if (state->reachable != agent->hypervisor_said || !agent->hypervisor_said_once) {
    if (state->reachable)
      log_message(LOG_INFO, NAMES_MESSAGE_LIBVIRT_BACK, fields, G_N_ELEMENTS(fields),
                  "libvirtd at %s answers", hypervisor_get_uri(hypervisor));
    else
      log_message(LOG_WARNING, NAMES_MESSAGE_LIBVIRT_LOST, fields, G_N_ELEMENTS(fields),
                  "libvirtd at %s does not answer, retrying: %s", hypervisor_get_uri(hypervisor),
                  state->message);
    agent->hypervisor_said = state->reachable;
    agent->hypervisor_said_once = true;
  }
  mover_status_changed(&agent->mover);
  /* Events of the old connection may be lost, and a new one, if any, has had none yet. */
  incoming_lose_sight(&agent->mover, state->message);
  if (state->reachable) {
    incoming_look_at_all(&agent->mover);
    evaluator_libvirt_is_back(agent->node.evaluator);
  }
  admit_jobs(&agent->mover);
}

static void on_hypervisor_event(const MigVirtEvent *event, gpointer user_data) {
  Agent *agent = user_data;

  lifecycle_handle_event(&agent->mover, event);
  evaluator_handle_event(agent->node.evaluator, event);
  drain_handle_event(&agent->drains, event);
}

/* --- records of the previous run --- */

static void read_job(Agent *agent, const char *id, json_t *record, const GError *error) {
  g_autoptr(GError) bad = NULL;
  Job *job = record ? job_from_record(record, agent->jobs.boot_id, &bad) : NULL;

  if (job && (strcmp(job->id, id) != 0 || job_table_find_id(agent->jobs.table, job->id))) {
    g_set_error(&bad, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "it contains another job (%s)", job->id);
    g_clear_pointer(&job, job_free);
  }
  if (job && job->request_key && job_table_find_request_key(agent->jobs.table, job->request_key)) {
    g_set_error(&bad, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "another record has the same request key");
    g_clear_pointer(&job, job_free);
  }
  if (!job) {
    damaged_note(agent->jobs.damaged, agent->jobs.store, id, record, error ? error->message : bad->message);
    return;
  }
  job_table_add(agent->jobs.table, job);
}

typedef struct Loading {
  Agent *agent;
  GError *refused; /* what keeps the agent from starting */
} Loading;

static void on_record(const char *id, json_t *record, const GError *error, gpointer user_data) {
  Loading *loading = user_data;
  Agent *agent = loading->agent;
  g_autoptr(GError) bad = NULL;

  /* Without this record the agent would break promises: forget a request, or migrate a domain a second time. */
  if (record && !record_upgrade(record, &bad) && g_error_matches(bad, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED)) {
    if (!loading->refused)
      g_set_error(
          &loading->refused, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
          "cannot start with jobs/%s.json: %s. Start the newer handoffd, or, if you know what became of its "
          "jobs, move their records away",
          id, bad->message);
    return;
  }
  if (error && (strcmp(id, CORDON_RECORD_ID) == 0 || strcmp(id, DRAIN_RECORD_ID) == 0))
    damaged_note(agent->jobs.damaged, agent->jobs.store, id, NULL, error->message);
  if (strcmp(id, CORDON_RECORD_ID) == 0)
    cordon_read(&agent->node.cordon, record, error);
  else if (strcmp(id, DRAIN_RECORD_ID) == 0)
    drain_read(&agent->drains, record, error);
  else
    read_job(agent, id, record, error);
}

static bool load(Agent *agent, GError **error) {
  Loading loading = {.agent = agent};

  if (!store_load(agent->jobs.store, on_record, &loading, error))
    return false;
  if (loading.refused)
    g_propagate_error(error, loading.refused);
  return !loading.refused;
}

static bool may_be_moving(const Job *job) {
  return job->phase == MIG_PHASE_MIGRATING || job->phase == MIG_PHASE_RECOVERING;
}

static void adopt_jobs(Agent *agent) {
  g_autoptr(GPtrArray) unfinished = g_ptr_array_new();
  const GPtrArray *all = job_table_all(agent->jobs.table);

  /* Jobs that may be migrating come first: the places are theirs. */
  for (int moving = 1; moving >= 0; moving--)
    for (guint i = 0; i < all->len; i++)
      if (!job_is_final(all->pdata[i]) && may_be_moving(all->pdata[i]) == moving)
        g_ptr_array_add(unfinished, all->pdata[i]);
  for (guint i = 0; i < unfinished->len; i++)
    lifecycle_adopt(&agent->mover, unfinished->pdata[i]);
  admit_jobs(&agent->mover);
}

/* --- the clock --- */

static gboolean on_tick(gpointer user_data) {
  Agent *agent = user_data;

  jobs_tick(&agent->jobs);
  lifecycle_tick(&agent->mover);
  hangs_tick(&agent->mover);
  evaluator_tick(agent->node.evaluator);
  profiler_tick(agent->node.profiler);
  hostdown_tick(&agent->node);
  metrics_tick(&agent->node);
  drain_tick(&agent->drains);
  return G_SOURCE_CONTINUE;
}

static gboolean on_watch_flush(gpointer user_data) {
  Agent *agent = user_data;

  watch_flush(&agent->requests);
  return G_SOURCE_CONTINUE;
}

static GSource *start_timer(Agent *agent, unsigned interval_ms, GSourceFunc func) {
  GSource *source = g_timeout_source_new(interval_ms);

  g_source_set_callback(source, func, agent, NULL);
  g_source_attach(source, agent->context);
  return source;
}

static void stop_timer(GSource **source) {
  if (*source)
    g_source_destroy(*source);
  g_clear_pointer(source, g_source_unref);
}

/* --- the whole --- */

static void prefer_targets(Agent *agent, const char *own_uri) {
  g_autoptr(GPtrArray) uris = g_ptr_array_new();

  for (guint i = 0; i < agent->config->targets->len; i++)
    g_ptr_array_add(uris, ((const ConfigTarget *)agent->config->targets->pdata[i])->libvirt_uri);
  g_ptr_array_add(uris, NULL);
  agent->driver->ops->prefer(agent->driver, own_uri, (const char *const *)uris->pdata);
}

void agent_apply_config(Agent *agent) {
  prefer_targets(agent, hypervisor_get_uri(agent->mover.hypervisor));
  agent->requests.group_gid = find_group(agent->config->group);
  stop_timer(&agent->watch_tick);
  agent->watch_tick = start_timer(agent, MAX(agent->config->watch_interval_ms / 2, 20), on_watch_flush);
}

static void log_config_warnings(const Config *config) {
  for (guint i = 0; i < config->warnings->len; i++)
    log_message(LOG_WARNING, NAMES_MESSAGE_CONFIG_WARNING, NULL, 0, "%s",
                (const char *)config->warnings->pdata[i]);
}

/* Everything that needs neither this node's libvirtd nor the disk. */
static void furnish(Agent *agent) {
  Config *config = agent->config;

  agent->jobs = (Jobs){
      .config = config,
      .context = agent->context,
      .boot_id = read_boot_id(),
      .table = job_table_new(),
      .queue = job_queue_new(config),
      .damaged = damaged_new(),
  };
  agent->mover = (Mover){
      .jobs = &agent->jobs,
      .config = config,
      .context = agent->context,
      .bandwidth = bandwidth_new(config),
      .hangs = hangs_new(),
      .hostname = agent->hostname,
  };
  agent->requests = (Requests){
      .jobs = &agent->jobs,
      .mover = &agent->mover,
      .config = config,
      .denials = denials_new(),
      .watchers = watch_list_new(),
      .group_gid = find_group(config->group),
  };
  agent->node = (Node){
      .jobs = &agent->jobs,
      .mover = &agent->mover,
      .requests = &agent->requests,
      .config = config,
      .started_usec = g_get_real_time(),
  };
  agent->drains = (Drains){
      .jobs = &agent->jobs,
      .mover = &agent->mover,
      .requests = &agent->requests,
      .node = &agent->node,
      .config = config,
  };
  agent->methods = (Methods){
      .jobs = &agent->jobs,
      .mover = &agent->mover,
      .requests = &agent->requests,
      .node = &agent->node,
      .drains = &agent->drains,
      .config = config,
  };
}

static void on_job(Job *job, JobChange change, gpointer user_data) {
  const Agent *agent = user_data;

  if (change == JOB_CHANGE_STATE)
    mover_status_changed(&agent->mover);
}

/* The observers of jobs, in the order in which they are called. */
static void connect_rooms(Agent *agent) {
  jobs_observe(&agent->jobs, drain_on_job, &agent->drains);
  jobs_observe(&agent->jobs, watch_on_job, &agent->requests);
  jobs_observe(&agent->jobs, request_on_job, &agent->requests);
  jobs_observe(&agent->jobs, metrics_on_job, &agent->node);
  jobs_observe(&agent->jobs, on_job, agent);
  jobs_observe(&agent->jobs, admit_on_job, &agent->mover);
}

static LocalCalls *new_calls(const Agent *agent, unsigned threads) {
  return local_calls_new(agent->mover.hypervisor, agent->context, threads, agent->config->connect_timeout_ms);
}

Agent *agent_new(GMainContext *context, Config *config, MigDriver *driver, const AgentOptions *options,
                 GError **error) {
  const VarlinkServiceInfo info = {"handoffd", "handoffd", HANDOFFD_VERSION, ""};
  const HypervisorHooks hooks = {on_hypervisor_state, on_hypervisor_event};
  Agent *agent = g_new0(Agent, 1);

  agent->context = g_main_context_ref(context);
  agent->config = config;
  /* From here on nobody uses the unwrapped driver. */
  agent->driver = driver = call_watch_new(driver);
  agent->hostname = g_strdup(g_get_host_name());
  furnish(agent);
  connect_rooms(agent);
  agent->requests.server = varlink_server_new(context, &info, NULL);
  agent->jobs.store = store_open(options->state_directory, context, error);
  if (!methods_register(&agent->methods, error) || !agent->jobs.store || !load(agent, error)) {
    agent_free(agent);
    return NULL;
  }
  recorder_open(&agent->jobs, options->state_directory);
  varlink_server_set_overload_error(agent->requests.server, "io.handoffd.Agent.TooManyConnections");
  log_config_warnings(config);
  prefer_targets(agent, options->libvirt_uri);
  agent->mover.hypervisor =
      hypervisor_new(driver, options->libvirt_uri, config->connect_timeout_ms, context, &hooks, agent, error);
  if (!agent->mover.hypervisor) {
    agent_free(agent);
    return NULL;
  }
  agent->node.logind = logind_new(context, hostdown_on_shutdown, &agent->node);
  agent->methods.lookups = new_calls(agent, LOOKUP_THREADS);
  agent->methods.surveys = agent->drains.surveys = new_calls(agent, SURVEY_THREADS);
  agent->mover.local_calls = new_calls(agent, LOCAL_CALL_THREADS);
  agent->node.evaluator = evaluator_new(&agent->node);
  agent->node.profiler = profiler_new(&agent->node);
  agent->tick = start_timer(agent, TICK_MS, on_tick);
  agent->watch_tick = start_timer(agent, MAX(config->watch_interval_ms / 2, 20), on_watch_flush);
  adopt_jobs(agent);
  drain_resume(&agent->drains);
  return agent;
}

bool agent_free(Agent *agent) {
  bool left_behind = false;
  const GPtrArray *all;

  if (!agent)
    return true;
  agent->mover.status_changed = NULL;
  agent->mover.ending = true;
  stop_timer(&agent->tick);
  stop_timer(&agent->watch_tick);
  logind_free(agent->node.logind);
  metrics_close(&agent->node);
  local_calls_free(agent->methods.lookups);
  g_clear_pointer(&agent->drains.drain, drain_free);
  local_calls_free(agent->methods.surveys);
  local_calls_free(agent->mover.local_calls);
  evaluator_free(g_steal_pointer(&agent->node.evaluator));
  profiler_free(g_steal_pointer(&agent->node.profiler));
  all = job_table_all(agent->jobs.table);
  for (guint i = 0; i < all->len; i++) {
    recorder_end(&agent->jobs, all->pdata[i]);
    left_behind = lifecycle_detach(all->pdata[i]) || left_behind;
    job_queue_remove(agent->jobs.queue, all->pdata[i]);
  }
  watch_free_all(&agent->requests);
  varlink_server_free(agent->requests.server);
  denials_free(agent->requests.denials);
  left_behind = !hypervisor_free(agent->mover.hypervisor) || left_behind;
  damaged_free(agent->jobs.damaged);
  store_close(agent->jobs.store);
  history_store_close(agent->jobs.histories);
  g_ptr_array_unref(agent->requests.watchers);
  job_table_free(agent->jobs.table);
  job_queue_free(agent->jobs.queue);
  bandwidth_free(agent->mover.bandwidth);
  cordon_clear(&agent->node.cordon);
  g_ptr_array_unref(agent->mover.hangs);
  if (!left_behind)
    mig_driver_free(agent->driver);
  config_free(agent->config);
  g_free(agent->jobs.boot_id);
  g_free(agent->hostname);
  g_main_context_unref(agent->context);
  g_free(agent);
  return !left_behind;
}

char *agent_describe(const Agent *agent) {
  g_autofree char *hangs = hangs_describe(agent->mover.hangs);
  const HypervisorState *state =
      agent->mover.hypervisor ? hypervisor_get_state(agent->mover.hypervisor) : NULL;
  unsigned moving = job_queue_count_running(agent->jobs.queue);
  uint64_t reserved_bytes;
  unsigned incoming = incoming_count(&agent->mover, &reserved_bytes);
  g_autofree char *coming =
      incoming > 0 ? g_strdup_printf(", %u expected or incoming", incoming) : g_strdup("");

  return g_strdup_printf("%s%s%s%u migrating, %u waiting%s; libvirtd %s%s",
                         agent->mover.host_going_down ? "the host is shutting down; " : "",
                         drain_is_active(&agent->drains) ? "draining; "
                         : agent->node.cordon.on         ? "cordoned; "
                                                         : "",
                         damaged_count(agent->jobs.damaged) > 0 ? "damaged records, see the journal; " : "",
                         moving, job_table_count_unfinished(agent->jobs.table) - moving - incoming, coming,
                         state && state->reachable ? "answers" : "does not answer", hangs);
}
