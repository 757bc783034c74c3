/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What ten thousand waiting jobs cost: a step of the admission, memory, a restart.
 *
 * The steps are those of the agent's own queue, in this process, over jobs as they are read back from records. Memory is that
 * of the daemon, beside the same daemon with one job; its restart is from exec to the first answer. */
#include "agent/job/jobrecord.h"
#include "agent/job/queue.h"
#include "tests/bench/bench-daemon.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB            (INT64_C(1) << 20)
#define JOBS           10000
#define TARGETS        20
#define PER_TARGET     2
#define RESTART_ROUNDS 5
#define IDLE_S         4

static bool as_json;
static json_t *results;

static void report(const char *key, double value, const char *unit, double aim, const char *remark) {
  json_t *row = json_pack("{sf ss}", "value", value, "unit", unit);
  char text[40] = "";

  if (aim > 0) {
    json_object_update_new(row, json_pack("{sf sb}", "at_most", aim, "met", (int)(value <= aim)));
    g_snprintf(text, sizeof text, value <= aim ? "at most %g" : "AIM MISSED: %g", aim);
  }
  json_object_set_new(results, key, row);
  if (as_json)
    return;
  printf("%-26s %10.*f %-6s %-16s %s\n", key, value < 10 ? 3 : 1, value, unit, text, remark);
  fflush(stdout);
}

static double now_us(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* --- the agent's queue --- */

static const MigPriority priorities[] = {MIG_PRIORITY_RUNNING, MIG_PRIORITY_CRITICAL, MIG_PRIORITY_USER,
                                         MIG_PRIORITY_MAINTENANCE, MIG_PRIORITY_DEFAULT};

static Job *make_job(unsigned i) {
  g_autofree char *domain = g_strdup_printf("instance-%08x", i);
  g_autofree char *target = g_strdup_printf("qemu+tls://compute-%u.example.org/system", i % TARGETS);
  char message[100];
  Job *job = job_new();

  job->seq = i + 1;
  job->created_usec += (int64_t)i * 1000;
  job->request_key = g_strdup_printf("drain-20261121-%08x", i);
  job->request_digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, domain, -1);
  job->domain_name = g_steal_pointer(&domain);
  g_snprintf(job->domain_uuid, sizeof job->domain_uuid, "5276d085-21e3-4e78-8352-%012x", i);
  job->target_uri = g_steal_pointer(&target);
  job->target_name = g_strdup_printf("compute-%u", i % TARGETS);
  job->memory_bytes = 4096 * MIB;
  mig_policy_set(&job->policy, MIG_POLICY_PRIORITY, (uint64_t)priorities[i * 7 % G_N_ELEMENTS(priorities)],
                 message, sizeof message);
  job_add_event(job, "accepted", MIG_CAUSE_NONE, "to be moved to %s", job->target_name);
  return job;
}

/* The worst single one, beside the mean: whoever waits for the main loop waits for that. */
typedef struct Timing {
  double sum_us, worst_us;
  unsigned n;
} Timing;

static void count(Timing *timing, double us) {
  timing->sum_us += us;
  timing->worst_us = MAX(timing->worst_us, us);
  timing->n++;
}

static void report_timing(const char *key, const Timing *timing, double aim, const char *remark) {
  g_autofree char *text =
      g_strdup_printf("%s; the worst of %u: %.0f us", remark, timing->n, timing->worst_us);

  report(key, timing->sum_us / MAX(timing->n, 1), "us", aim, text);
}

/* As in the agent: a turn, its end, and what is said of one that waits. */
static unsigned drain_queue(JobQueue *queue) {
  Timing turn = {0}, end = {0}, none = {0}, explain = {0};
  GQueue running = G_QUEUE_INIT;
  double before;

  for (uint64_t now_ms = 1000;; now_ms += 10) {
    JobPending pending;
    Job *job = NULL, *first;
    MigTurn whose;

    before = now_us();
    whose = job_queue_next(queue, now_ms, &job);
    count(whose == MIG_TURN_NONE ? &none : &turn, now_us() - before);
    if (whose != MIG_TURN_NONE) {
      g_queue_push_tail(&running, job);
      continue;
    }
    first = job_queue_first(queue);
    if (first) {
      before = now_us();
      job_queue_explain(queue, first, now_ms, &pending);
      (void)job_queue_position(first);
      count(&explain, now_us() - before);
      g_free(pending.message);
    }
    job = g_queue_pop_head(&running);
    if (!job)
      break;
    before = now_us();
    job_queue_remove(queue, job);
    count(&end, now_us() - before);
  }
  report_timing("queue_turn_us", &turn, 50, "whose turn is it: a job gets a place");
  report_timing("queue_no_turn_us", &none, 50, "the same, and it is nobody's");
  report_timing("queue_end_us", &end, 50, "a job gives its place back");
  report_timing("queue_explain_us", &explain, 50, "position and reason of one that waits, in words");
  return end.n;
}

/* Each is looked at, and held by a condition of its own. */
static void hold_all(JobQueue *queue) {
  g_autoptr(GError) error =
      g_error_new_literal(MIG_VIRT_ERROR, MIG_VIRT_ERROR_FAILED, "not enough memory at the target");
  Timing hold = {0};
  Job *job;

  for (unsigned i = 0; i < JOBS; i++) {
    double before = now_us();

    if (job_queue_next(queue, 1, &job) != MIG_TURN_START)
      die("nobody's turn, with %u held", i);
    job_queue_hold(queue, job, MIG_HOLD_JOB, "TARGET_MEMORY", MIG_CAUSE_REFUSED, error, 1);
    count(&hold, now_us() - before);
  }
  report_timing("queue_hold_us", &hold, 50, "a turn, and back for a condition of its own");
}

static void bench_steps(void) {
  g_autoptr(Config) config = config_new();
  g_autoptr(JobQueue) queue = NULL;
  g_autoptr(GPtrArray) jobs = g_ptr_array_new_with_free_func((GDestroyNotify)job_free);
  Timing push = {0};
  unsigned ended;

  config->max_outgoing = 8;
  config->max_per_target = PER_TARGET;
  queue = job_queue_new(config);
  for (unsigned i = 0; i < JOBS; i++) {
    double before;

    g_ptr_array_add(jobs, make_job(i * 7919 % JOBS));
    before = now_us();
    job_queue_push(queue, jobs->pdata[i], 1);
    count(&push, now_us() - before);
  }
  report_timing("queue_push_us", &push, 50, "a job comes, 10,000 for 20 targets");
  ended = drain_queue(queue);
  if (ended != JOBS)
    die("%u of %u jobs had their turn", ended, JOBS);
  for (unsigned i = 0; i < JOBS; i++)
    job_queue_push(queue, jobs->pdata[i], 1);
  hold_all(queue);
  for (unsigned i = 0; i < JOBS; i++)
    job_queue_remove(queue, jobs->pdata[i]);
}

/* --- the daemon --- */

static void put_pending(const Daemon *daemon, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    g_autoptr(Job) job = make_job(i);
    g_autofree char *path = g_strdup_printf("%s/jobs/%s.json", daemon->state_directory, job->id);
    json_t *record;

    g_free(job->target_uri);
    job->target_uri = g_strdup_printf("fake://%s?host=b", daemon->control);
    record = job_to_record(job, "");
    if (json_dump_file(record, path, JSON_COMPACT) < 0)
      die("%s cannot be written", path);
    json_decref(record);
  }
}

static unsigned pending_of(VarlinkClient *client) {
  json_t *node = call(client, "GetNode", NULL);
  unsigned pending = (unsigned)json_integer_value(json_object_get(node, "pending"));

  json_decref(node);
  return pending;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
  qsort(values, n, sizeof *values, compare);
  return values[n / 2];
}

static void wait_s(double seconds) {
  struct pollfd nothing = {.fd = -1};

  poll(&nothing, 1, (int)(seconds * 1000));
}

/* What the libraries and the reading itself take is in the one with a single job as well. */
typedef struct Figures {
  double restart_ms, restart_cpu_ms, idle_cpu_pct;
  Memory memory;
} Figures;

static Figures restart_with(const DaemonOptions *options, unsigned n) {
  g_autoptr(Daemon) daemon = daemon_new(options);
  double took_ms[RESTART_ROUNDS], took_cpu_ms[RESTART_ROUNDS], cpu;
  Figures figures;

  put_pending(daemon, n);
  for (unsigned round = 0; round < RESTART_ROUNDS; round++) {
    g_autoptr(VarlinkClient) client = NULL;
    double before;

    daemon_kill(daemon);
    before = now_us();
    daemon_start(daemon);
    client = daemon_connect(daemon);
    if (pending_of(client) < n)
      die("%u of %u jobs wait after a restart", pending_of(client), n);
    took_ms[round] = (now_us() - before) / 1000;
    took_cpu_ms[round] = daemon_cpu_s(daemon) * 1000;
  }
  figures.restart_ms = median(took_ms, RESTART_ROUNDS);
  figures.restart_cpu_ms = median(took_cpu_ms, RESTART_ROUNDS);
  wait_s(1);
  cpu = daemon_cpu_s(daemon);
  wait_s(IDLE_S);
  figures.idle_cpu_pct = (daemon_cpu_s(daemon) - cpu) / IDLE_S * 100;
  figures.memory = daemon_memory(daemon);
  return figures;
}

static void bench_daemon(void) {
  /* This node's libvirtd is away, and so all of them wait. */
  DaemonOptions options = {.domains = 1,
                           .memory_bytes = 16 * MIB,
                           .link_bytes_per_s = MIB,
                           .config = "MaxJobs=20000\nPendingTimeout=0\n",
                           .libvirt_uri = "fake:///nonexistent?host=a"};
  Figures one = restart_with(&options, 1), all = restart_with(&options, JOBS);

  report("queue_job_kib", (double)(all.memory.anonymous - one.memory.anonymous) / (JOBS - 1), "KiB", 4,
         "the daemon's own data for each of 10,000, after a restart");
  report("queue_restart_ms", all.restart_ms, "ms", 2000,
         "from exec to the first answer, 10,000 waiting jobs");
  report("queue_restart_cpu_ms", all.restart_cpu_ms, "ms", 0, "of that, the daemon's CPU time");
  report("queue_restart_one_ms", one.restart_ms, "ms", 0, "with one waiting job");
  report("queue_idle_cpu_pct", all.idle_cpu_pct, "%", 0, "of a core, while all of them wait");
  report("queue_idle_one_cpu_pct", one.idle_cpu_pct, "%", 0, "the same with one");
}

int main(int argc, char **argv) {
  results = json_object();
  for (int i = 1; i < argc; i++)
    as_json = as_json || strcmp(argv[i], "--json") == 0;
  if (!g_getenv("HANDOFFD_FAKE"))
    die("to be run by tests/bench/run, which says where the programs are");
  bench_steps();
  bench_daemon();
  if (as_json) {
    json_dumpf(results, stdout, JSON_INDENT(1));
    putchar('\n');
  }
  json_decref(results);
  return 0;
}
