/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One migration of a real guest, steered by a strategy through the real driver: one JSON object at its end. */
#include "libmigrate/virt/driver.h"
#include "tests/bench/peers/peers.h"
#include "tests/sim/engine.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Theory of operation
 *
 * A thread sits in the driver's migrate() until it returns. The main thread looks at the job each poll_ms of the
 * strategy (and at the start of an iteration, for those that act on libvirt's event), steps the strategy, and does what
 * it says. Times are of CLOCK_MONOTONIC, from the call to its return, as the simulator counts.
 *
 * It ends: past the time limit the job is aborted and counts as not finished; in post-copy, where there is no way
 * back, it is waited for. A guest that was paused and stayed at the source is resumed. */

enum { CONNECT_MS = 5000, MOST_ACTIONS = 64, STATUS_TRIES = 20, STATUS_WAIT_US = 100000 };

typedef struct Options {
  const char *source, *target, *migrate_uri, *domain, *strategy, *policy;
  char goals[1024];
  uint64_t time_limit_ms;
  uint64_t link_bytes_per_s;
  bool no_probe;
  const char *trace; /* a file for the samples, or NULL */
} Options;

typedef struct Done {
  uint64_t at_ms;
  MigAction action;
  char *error; /* NULL: done */
} Done;

typedef struct Race {
  const Options *options;
  MigDriver *driver;
  MigConn *conn;
  const Strategy *strategy;
  bool on_iteration;
  const MigPolicy *policy; /* what is permitted; the request's is what the strategy makes of it */
  MigMigrateRequest request;
  MigPolicy goals; /* the request points to them */
  StrategyStart start;
  FILE *trace;

  /* Of the main thread. */
  uint64_t began_ms;
  MigSample last;
  unsigned max_throttle_pct;
  MigVcpus vcpus;
  Done done[MOST_ACTIONS];
  unsigned n_done;
  bool paused, post_copy, out_of_time;

  /* Shared with the migrating thread and the driver's events. */
  GMutex lock;
  GCond changed;
  bool returned;
  bool moved; /* what migrate() returned */
  char *error;
  uint64_t returned_ms;
  uint64_t iteration_seen;
  bool have_final;
  MigFinalStats final;
} Race;

static uint64_t now_ms(void) {
  return (uint64_t)g_get_monotonic_time() / 1000;
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "race: %s: %s\n", what, why);
  exit(1);
}

static void on_event(const MigVirtEvent *event, gpointer user_data) {
  Race *race = user_data;
  g_mutex_lock(&race->lock);
  if (event->kind == MIG_VIRT_EVENT_ITERATION) {
    race->iteration_seen = event->iteration;
    if (race->on_iteration)
      g_cond_broadcast(&race->changed);
  } else if (event->kind == MIG_VIRT_EVENT_JOB_DONE && !race->have_final) {
    race->have_final = true;
    race->final = event->final;
  }
  g_mutex_unlock(&race->lock);
}

static gpointer migrate_thread(gpointer data) {
  Race *race = data;
  g_autoptr(GError) error = NULL;
  bool moved = race->driver->ops->migrate(race->conn, &race->request, &error);
  uint64_t returned_ms = now_ms();
  g_mutex_lock(&race->lock);
  race->moved = moved;
  race->error = error ? g_strdup(error->message) : NULL;
  race->returned_ms = returned_ms;
  race->returned = true;
  g_cond_broadcast(&race->changed);
  g_mutex_unlock(&race->lock);
  return NULL;
}

static void act(Race *race, const MigAction *action) {
  const MigDriverOps *ops = race->driver->ops;
  const char *uuid = race->request.uuid;
  g_autoptr(GError) error = NULL;
  bool ok = false;
  switch (action->kind) {
  case MIG_ACTION_ABORT:
    ok = ops->abort_job(race->conn, uuid, NULL, &error);
    break;
  case MIG_ACTION_SET_DOWNTIME:
    ok = ops->set_max_downtime(race->conn, uuid, action->downtime_ms, NULL, &error);
    break;
  case MIG_ACTION_START_POST_COPY:
    ok = ops->start_post_copy(race->conn, uuid, NULL, &error);
    race->post_copy |= ok;
    break;
  case MIG_ACTION_PAUSE:
    /* By a limit QEMU stops the guest itself, where it fits. */
    ok = action->downtime_ms > 0 ? ops->set_max_downtime(race->conn, uuid, action->downtime_ms, NULL, &error)
                                 : ops->suspend(race->conn, uuid, NULL, &error);
    race->paused |= ok;
    break;
  default:
    return;
  }
  if (race->n_done < MOST_ACTIONS)
    race->done[race->n_done++] = (Done){.at_ms = now_ms() - race->began_ms,
                                        .action = *action,
                                        .error = ok ? NULL : g_strdup(error ? error->message : "?")};
}

static void take_sample(Race *race, MigBandwidth *bandwidth, MigSample *ret_sample) {
  g_autoptr(GError) error = NULL;
  if (!race->driver->ops->job_stats(race->conn, race->request.uuid, &race->vcpus, ret_sample, &error))
    *ret_sample = (MigSample){0};
  ret_sample->now_ms = now_ms();
  if (!ret_sample->valid || !ret_sample->active)
    return;
  ret_sample->bandwidth_bytes_per_s = mig_bandwidth_update(
      bandwidth, ret_sample->now_ms, ret_sample->memory_processed_bytes + ret_sample->disk_processed_bytes);
  race->max_throttle_pct = MAX(race->max_throttle_pct, (unsigned)ret_sample->throttle_pct);
  race->post_copy |= ret_sample->post_copy;
  race->last = *ret_sample;
  if (race->trace)
    fprintf(race->trace,
            "%" PRIu64 " iteration %" PRIu64 " remaining %" PRIu64 " processed %" PRIu64 " bandwidth %" PRIu64
            " bps %" PRIu64 " dirty %" PRIu64 " throttle %" PRIu64 " expected %" PRIu64 "%s\n",
            ret_sample->now_ms - race->began_ms, ret_sample->iteration, ret_sample->memory_remaining_bytes,
            ret_sample->memory_processed_bytes, ret_sample->bandwidth_bytes_per_s,
            ret_sample->memory_bps_bytes_per_s, ret_sample->dirty_rate_bytes_per_s, ret_sample->throttle_pct,
            ret_sample->expected_downtime_ms, ret_sample->post_copy ? " post-copy" : "");
}

/* Until the call has returned. */
static void steer(Race *race, void *state) {
  MigBandwidth bandwidth = {0};
  uint64_t limit_ms = race->began_ms + race->options->time_limit_ms;
  for (;;) {
    gint64 next_us = g_get_monotonic_time() + (gint64)race->strategy->poll_ms * 1000;
    g_mutex_lock(&race->lock);
    uint64_t iteration = race->iteration_seen;
    gint64 until_us = race->out_of_time ? next_us : MIN(next_us, (gint64)limit_ms * 1000);
    while (!race->returned && (!race->on_iteration || race->iteration_seen == iteration))
      if (!g_cond_wait_until(&race->changed, &race->lock, until_us))
        break;
    bool returned = race->returned;
    g_mutex_unlock(&race->lock);
    if (returned)
      return;

    MigSample sample;
    MigAction action = {0};
    take_sample(race, &bandwidth, &sample);
    if (!race->out_of_time && now_ms() >= limit_ms) {
      race->out_of_time = true;
      if (!race->post_copy)
        act(race, &(MigAction){.kind = MIG_ACTION_ABORT, .cause = MIG_CAUSE_DEADLINE});
      continue;
    }
    if (race->out_of_time)
      continue;
    race->strategy->step(state, &sample, &action);
    act(race, &action);
  }
}

/* Confirmed at the target; a call that failed may still have moved it. */
static bool runs_at(Race *race, MigConn *conn) {
  MigDomainStatus status;
  for (int i = 0; i < STATUS_TRIES; i++) {
    if (race->driver->ops->domain_status(conn, race->request.uuid, &status, NULL) && !status.job_active)
      return status.state == MIG_END_RUNNING;
    g_usleep(STATUS_WAIT_US);
  }
  return false;
}

static const char *end_of(const Race *race, bool success) {
  if (!success)
    return race->out_of_time ? "out of time" : race->n_done > 0 ? "aborted" : "failed";
  return sim_end_name(race->post_copy ? SIM_END_POST_COPY : race->paused ? SIM_END_PAUSED : SIM_END_PRE_COPY);
}

static void print_text(const char *text) {
  putchar('"');
  for (; text && *text; text++)
    if (*text == '"' || *text == '\\')
      printf("\\%c", *text);
    else
      putchar((unsigned char)*text < 0x20 ? ' ' : *text);
  putchar('"');
}

static void print_result(const Race *race, bool success) {
  uint64_t cause = MIG_CAUSE_NONE;
  for (unsigned i = 0; i < race->n_done; i++)
    if (race->done[i].action.kind == MIG_ACTION_ABORT)
      cause = race->done[i].action.cause;
  printf(
      "{\"where\":\"lab\",\"strategy\":\"%s\",\"policy\":\"%s\",\"success\":%s,\"end\":\"%s\",\"cause\":"
      "\"%s\","
      "\"total_ms\":%" PRIu64 ",\"iterations\":%" PRIu64 ",\"throttle_pct\":%u,\"max_downtime_ms\":%" PRIu64
      ",\"max_pause_ms\":%" PRIu64 ",\"began_us\":%" PRIu64 ",\"ended_us\":%" PRIu64,
      race->strategy->name, race->options->policy, success ? "true" : "false", end_of(race, success),
      mig_cause_name((MigCause)cause), race->returned_ms - race->began_ms,
      race->have_final ? race->final.last.iteration : race->last.iteration, race->max_throttle_pct,
      mig_policy_get(race->policy, MIG_POLICY_MAX_DOWNTIME_MS),
      mig_policy_get(race->policy, MIG_POLICY_MAX_PAUSE_MS), race->began_ms * 1000, race->returned_ms * 1000);
  if (race->have_final && race->final.have_downtime)
    printf(",\"downtime_ms\":%" PRIu64, race->final.downtime_ms);
  if (race->have_final)
    printf(",\"libvirt_total_ms\":%" PRIu64 ",\"transferred_bytes\":%" PRIu64, race->final.total_time_ms,
           race->final.transferred_bytes);
  printf(",\"error\":");
  print_text(success ? "" : race->error);
  printf(",\"actions\":[");
  for (unsigned i = 0; i < race->n_done; i++) {
    const Done *done = &race->done[i];
    printf("%s{\"at_ms\":%" PRIu64 ",\"action\":\"%s\",\"downtime_ms\":%" PRIu64 ",\"done\":%s,\"message\":",
           i ? "," : "", done->at_ms, mig_action_name(done->action.kind), done->action.downtime_ms,
           done->error ? "false" : "true");
    print_text(done->error ? done->error : done->action.message);
    putchar('}');
  }
  puts("]}");
}

/* What is known before the start. All are probed, whether they use it or not, so that the guest is of the same age for all
 * where its phase matters. */
static void look_at_guest(const Race *race, const MigDomainFacts *facts, StrategyGuest *ret_guest) {
  g_autoptr(GError) error = NULL;
  MigProbe probe = {0};
  *ret_guest = (StrategyGuest){
      .memory_bytes = facts->memory_bytes,
      .probe_dirty_bytes_per_s = UINT64_MAX,
      .link_bytes_per_s = race->options->link_bytes_per_s,
      .passthrough = facts->passthrough,
  };
  if (race->options->no_probe)
    return;
  if (!race->driver->ops->probe_dirty_rate(race->conn, facts->uuid, 1, &probe, &error)) {
    fprintf(stderr, "race: %s\n", error->message);
    return;
  }
  ret_guest->probe_dirty_bytes_per_s = (uint64_t)mig_dirty_curve_lower(&probe.curve, 1);
  ret_guest->probe_cpu_share = probe.cpu_share;
}

/* The strategy's wishes for the start, as the driver takes them: goals, of which it makes flags and parameters. */
static void make_request(Race *race, const MigDomainFacts *facts, const StrategyGuest *guest, void *state,
                         const MigPolicy *policy) {
  const Options *options = race->options;
  race->strategy->start(state, policy, guest, race->began_ms, &race->start);

  MigMigrateRequest *request = &race->request;
  g_strlcpy(request->uuid, facts->uuid, sizeof(request->uuid));
  request->target_uri = options->target;
  request->migrate_uri = options->migrate_uri;
  race->goals = *policy;
  request->policy = &race->goals;
  request->facts.passthrough = facts->passthrough;
  race->goals.values[MIG_POLICY_ALLOW_POST_COPY] = race->start.post_copy;
  race->goals.values[MIG_POLICY_ALLOW_AUTO_CONVERGE] = race->start.auto_converge;
  race->goals.values[MIG_POLICY_MAX_DOWNTIME_MS] = race->start.downtime_ms ? race->start.downtime_ms : 300;
  request->throttle_initial_pct = race->start.throttle_initial_pct;
  request->throttle_increment_pct = race->start.throttle_increment_pct;
}

static int run(const Options *options, const Strategy *strategy, bool on_iteration, const MigPolicy *policy) {
  g_autoptr(GError) error = NULL;
  g_auto(MigDomainFacts) facts = {0};
  Race race = {.options = options, .strategy = strategy, .on_iteration = on_iteration, .policy = policy};
  g_autoptr(MigDriver) driver = mig_driver_libvirt_new(&error);
  if (!driver)
    fail("libvirt", error->message);
  race.driver = driver;
  g_mutex_init(&race.lock);
  g_cond_init(&race.changed);
  race.conn = driver->ops->open(driver, options->source, CONNECT_MS, on_event, &race, &error);
  if (!race.conn)
    fail(options->source, error->message);
  if (!driver->ops->domain_facts(race.conn, options->domain, &facts, &error))
    fail(options->domain, error->message);
  if (options->trace && !(race.trace = fopen(options->trace, "w")))
    fail(options->trace, g_strerror(errno));

  g_autofree void *state = g_malloc0(strategy->state_size);
  StrategyGuest guest;
  look_at_guest(&race, &facts, &guest);
  race.began_ms = now_ms();
  make_request(&race, &facts, &guest, state, policy);
  GThread *thread = g_thread_new("migrate", migrate_thread, &race);
  steer(&race, state);
  g_thread_join(thread);
  if (race.trace)
    fclose(race.trace);

  bool success = race.moved || !runs_at(&race, race.conn);
  if (!race.moved && race.paused && driver->ops->resume(race.conn, race.request.uuid, NULL, NULL))
    success = false;
  /* A call that failed and no guest at the source: only the target can tell. */
  if (!race.moved && success) {
    MigConn *target = driver->ops->open(driver, options->target, CONNECT_MS, NULL, NULL, NULL);
    success = target && runs_at(&race, target);
    if (target)
      driver->ops->close(target);
  }
  print_result(&race, success);
  driver->ops->close(race.conn);
  g_free(race.error);
  for (unsigned i = 0; i < race.n_done; i++)
    g_free(race.done[i].error);
  return 0;
}

static int usage(FILE *out) {
  fputs(
      "race --source URI --target URI --domain NAME --strategy NAME [--policy CLASS] [--set KEY=VALUE]...\n"
      "     [--migrate-uri URI] [--time-limit S] [--link BYTES_PER_S] [--no-probe] [--trace FILE]\n"
      "Moves a guest and prints one JSON object. URIs: the source's as seen from here, the target's as seen\n"
      "from there. NAME is handoffd or a peer (bench-policies --list).\n",
      out);
  return out == stdout ? 0 : 2;
}

int main(int argc, char **argv) {
  static const struct option known[] = {{"source", 1, NULL, 's'},
                                        {"target", 1, NULL, 't'},
                                        {"domain", 1, NULL, 'd'},
                                        {"strategy", 1, NULL, 'S'},
                                        {"policy", 1, NULL, 'p'},
                                        {"set", 1, NULL, 'k'},
                                        {"time-limit", 1, NULL, 'l'},
                                        {"migrate-uri", 1, NULL, 'm'},
                                        {"link", 1, NULL, 'L'},
                                        {"no-probe", 0, NULL, 'P'},
                                        {"trace", 1, NULL, 'T'},
                                        {"help", 0, NULL, 'h'},
                                        {0}};
  Options options = {.policy = "plain", .time_limit_ms = 20000};
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    size_t used = strlen(options.goals);
    switch (c) {
    case 's':
      options.source = optarg;
      break;
    case 't':
      options.target = optarg;
      break;
    case 'd':
      options.domain = optarg;
      break;
    case 'S':
      options.strategy = optarg;
      break;
    case 'p':
      options.policy = optarg;
      break;
    case 'k':
      snprintf(options.goals + used, sizeof(options.goals) - used, " %s", optarg);
      break;
    case 'l':
      options.time_limit_ms = strtoull(optarg, NULL, 10) * 1000;
      break;
    case 'm':
      options.migrate_uri = optarg;
      break;
    case 'L':
      options.link_bytes_per_s = strtoull(optarg, NULL, 10);
      break;
    case 'P':
      options.no_probe = true;
      break;
    case 'T':
      options.trace = optarg;
      break;
    case 'h':
      return usage(stdout);
    default:
      return usage(stderr);
    }
  }
  if (optind < argc || !options.source || !options.target || !options.domain || !options.strategy)
    return usage(stderr);

  PeerClass kind = peer_class_find(options.policy);
  const Peer *peer = peer_find(options.strategy);
  bool ours = strcmp(options.strategy, strategy_handoffd.name) == 0;
  MigPolicy policy;
  char message[256] = "no such policy";
  mig_policy_init(&policy);
  if (kind == PEER_CLASS_COUNT ||
      !peer_policy_add(&policy, peer_class_info(kind)->goals, message, sizeof(message)) ||
      !peer_policy_add(&policy, options.goals, message, sizeof(message)) || (!ours && !peer)) {
    fprintf(stderr, "race: %s\n", ours || peer ? message : "no such strategy");
    return 2;
  }
  return run(&options, ours ? &strategy_handoffd : peer->strategy, !ours && peer->on_iteration, &policy);
}
