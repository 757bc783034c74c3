/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prepare and Release: a lease for an expected domain, and its return.
 *
 * Theory of Operation. What can be answered at once is answered at once. Then a LocalCall asks the source's libvirtd about the
 * domain, and this node's about everything that the domain needs. It decides nothing. The main thread decides, in one piece:
 * it sees the memory reserved for others and the number of expected domains as they are at that moment, so that no two calls
 * get the same place. From then on the lease is a job (move/incoming.c).
 *
 * Only the source can see whether a disk is on shared storage. Here a disk counts as shared, unless disks are to be copied and
 * this node has nothing at its path: then it counts as one to copy. */
#include "agent/method/methods.h"

#include "agent/base/clock.h"
#include "agent/job/jobjson.h"
#include "agent/job/log.h"
#include "agent/libvirtd/survey.h"
#include "agent/move/incoming.h"
#include "agent/request/params.h"
#include "agent/request/reply.h"
#include "agent/request/request-key.h"

#include <inttypes.h>
#include <string.h>

#define TIMEOUT_MAX_S 86400

/* For the whole survey: less than a client waits. The first use of an emulator takes seconds of it. */
#define SURVEY_MS 25000

/* What the LocalCall is given, and what it returns. */
typedef struct Visit {
  char *source_uri;
  char *domain;
  unsigned connect_timeout_ms;
  Survey *survey;
  GError *source_error;
} Visit;

typedef struct Prepare {
  Methods *methods;
  uint64_t asked_ms;
  VarlinkCall *call;
  bool counted;
  RequestKey key;
  Caller *caller;
  char *domain;
  char *source;
  char *source_uri;
  GoalsParam asked;
  bool make_disks;
  uint64_t timeout_ms;
} Prepare;

static void visit_free(gpointer data) {
  Visit *visit = data;

  g_free(visit->source_uri);
  g_free(visit->domain);
  survey_free(visit->survey);
  g_clear_error(&visit->source_error);
  g_free(visit);
}

static void prepare_free(Prepare *prepare) {
  if (!prepare)
    return;
  if (prepare->counted)
    prepare->methods->jobs->starting--;
  g_clear_pointer(&prepare->call, varlink_call_unref);
  request_key_clear(&prepare->key);
  caller_free(prepare->caller);
  g_free(prepare->domain);
  g_free(prepare->source);
  g_free(prepare->source_uri);
  goals_param_clear(&prepare->asked);
  g_free(prepare);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Prepare, prepare_free)

/* --- the call --- */

static bool make_visit(MigDriver *driver, MigConn *here, gpointer task, GError **error) {
  Visit *visit = task;
  Survey *survey = visit->survey;
  const MigDriverOps *ops = driver->ops;
  MigConn *source =
      ops->open(driver, visit->source_uri, visit->connect_timeout_ms, NULL, NULL, &visit->source_error);
  bool ok;

  if (!source)
    return true;
  ok = ops->host_facts(source, &survey->source, &visit->source_error) &&
       ops->survey_domain(source, visit->domain, &survey->domain, &visit->source_error);
  ops->close(source);
  if (!ok)
    return true;
  survey->have_target = ops->survey_target(here, &survey->domain, &survey->source, &survey->target, error);
  return survey->have_target;
}

/* --- the decision --- */

static bool has_path(const MigDisk *disk) {
  return disk->source && (disk->type == MIG_DISK_FILE || disk->type == MIG_DISK_BLOCK ||
                          disk->type == MIG_DISK_DIR || disk->type == MIG_DISK_VOLUME);
}

static void place_disks(Survey *survey, const MigPolicy *policy) {
  bool copies = mig_policy_get(policy, MIG_POLICY_COPY_DISKS) != MIG_COPY_DISKS_NONE;
  MigDomainFacts *domain = &survey->domain;

  domain->local_disks = 0;
  domain->local_disk_bytes = 0;
  for (size_t i = 0; i < domain->n_disks && i < survey->target.n_disks; i++) {
    MigDisk *disk = &domain->disks[i];

    if (!has_path(disk))
      continue;
    disk->storage =
        copies && survey->target.disks[i].sight == MIG_SIGHT_ABSENT ? MIG_STORAGE_LOCAL : MIG_STORAGE_SHARED;
    if (!mig_disk_is_local(disk))
      continue;
    domain->local_disks++;
    domain->local_disk_bytes += disk->capacity_bytes;
  }
}

static bool is_room_code(const char *code) {
  return strcmp(code, "TARGET_MEMORY") == 0 || strcmp(code, "MEMORY_TIGHT") == 0;
}

static void add_findings(const Methods *methods, Job *job, const MigCheckReport *report, unsigned incoming,
                         uint64_t reserved_bytes) {
  unsigned max_incoming = methods->config->max_incoming;

  job_clear_findings(job);
  if (methods->mover->host_going_down)
    job_add_finding(job, mig_cause_name(MIG_CAUSE_HOST_SHUTDOWN), true, true, "This node is shutting down.",
                    "Choose another target, or wait until this node is up again.");
  if (mig_admit_incoming(incoming, max_incoming, false) != MIG_ADMISSION_START) {
    g_autofree char *seen =
        g_strdup_printf("%u domains are expected on this node or migrating to it, and it accepts %u at "
                        "a time (MaxIncoming=).",
                        incoming, max_incoming);

    job_add_finding(job, mig_admission_name(MIG_ADMISSION_INCOMING_LIMIT), true, true, seen,
                    "Wait until one of them has arrived, release a lease, or raise MaxIncoming=.");
  }
  for (size_t i = 0; i < report->count; i++) {
    const MigFinding *finding = &report->findings[i];
    g_autofree char *seen = NULL;

    if (is_room_code(finding->code) && reserved_bytes > 0)
      seen = g_strdup_printf("%s (%" PRIu64 " MiB are reserved for expected domains.)", finding->seen,
                             reserved_bytes / MIG_MIB_BYTES);
    job_add_finding(job, finding->code, finding->blocks, finding->transient, seen ? seen : finding->seen,
                    finding->remedy);
  }
}

static bool is_refused(const Job *job) {
  for (guint i = 0; job->findings && i < job->findings->len; i++)
    if (((const JobFinding *)job->findings->pdata[i])->blocks)
      return true;
  return false;
}

/* Images for the disks that are to be copied and do not exist here. */
static void plan_images(Job *job, const Survey *survey) {
  for (size_t i = 0; i < survey->domain.n_disks; i++) {
    const MigDisk *disk = &survey->domain.disks[i];
    const MigTargetDisk *there = &survey->target.disks[i];
    const MigImage image = {
        .path = disk->source,
        .pool = disk->type == MIG_DISK_VOLUME ? disk->pool : NULL,
        .volume = disk->type == MIG_DISK_VOLUME ? disk->volume : NULL,
        .format = disk->format ? disk->format : "raw",
        .capacity_bytes = disk->capacity_bytes,
    };

    if (mig_disk_is_local(disk) && (disk->type == MIG_DISK_FILE || disk->type == MIG_DISK_VOLUME) &&
        there->sight == MIG_SIGHT_ABSENT && there->pool && disk->capacity_bytes > 0)
      job_lease_add_image(job->lease, disk->target, &image);
  }
}

static Job *make_job(Prepare *prepare, const MigDomainFacts *domain, const Goals *goals) {
  g_autofree char *uri = incoming_uri(prepare->methods->mover);
  Job *job = job_new_for(&(JobRequest){
      .asked_ms = prepare->asked_ms,
      .caller = prepare->caller,
      .domain_name = domain->name,
      .domain_uuid = domain->uuid,
      .memory_bytes = domain->memory_bytes,
      .target_uri = uri,
      .migrate_uri = prepare->methods->config->incoming_migrate_uri,
      .goals = goals,
      .policy_name = prepare->asked.policy_name,
      .policy_matched = goals->matched ? goals->matched->name : NULL,
  });

  job->direction = MIG_DIRECTION_INCOMING;
  job->request_key = g_strdup(prepare->key.key);
  job->request_digest = g_strdup(prepare->key.digest);
  job->lease = job_lease_new();
  job->lease->leased = true;
  job->lease->source = g_strdup(prepare->source);
  job->lease->timeout_ms = prepare->timeout_ms;
  job->lease->expires_usec = g_get_real_time() + (int64_t)prepare->timeout_ms * 1000;
  return job;
}

static void on_ready(Job *job, const GError *error, gpointer user_data) {
  g_autoptr(Prepare) prepare = user_data;

  if (error)
    reply_error(prepare->call, "StoreFailed", json_pack("{ss}", "message", error->message));
  else if (job && job->failure.cause != MIG_CAUSE_NONE)
    request_refuse_lease(prepare->call, job);
  else if (job)
    request_reply(prepare->methods->requests, prepare->call, job, true);
}

static void reply_unavailable(VarlinkCall *call, const char *uri, const GError *error) {
  reply_error(call, "HypervisorUnavailable", json_pack("{ss ss}", "uri", uri, "message", error->message));
}

/* False: the call was answered. */
static bool has_facts(Prepare *prepare, const Visit *visit, const GError *error) {
  const char *here = hypervisor_get_uri(prepare->methods->mover->hypervisor);

  /* Only the thread knows which of the two hangs, and it is stuck in the call. */
  if (g_error_matches(error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT)) {
    g_autoptr(GError) late = g_error_new(
        MIG_VIRT_ERROR, MIG_VIRT_ERROR_TIMEOUT,
        "this node's libvirtd (%s) or the source's (%s) did not answer in time", here, prepare->source_uri);

    reply_unavailable(prepare->call, here, late);
    return false;
  }
  if (!visit) {
    reply_unavailable(prepare->call, here, error);
    return false;
  }
  if (g_error_matches(visit->source_error, MIG_VIRT_ERROR, MIG_VIRT_ERROR_NO_DOMAIN)) {
    reply_error(prepare->call, "NoSuchDomain", json_pack("{ss}", "domain", prepare->domain));
    return false;
  }
  if (visit->source_error) {
    reply_unavailable(prepare->call, prepare->source_uri, visit->source_error);
    return false;
  }
  return true;
}

static bool is_free(Prepare *prepare, const MigDomainFacts *domain) {
  Job *busy = job_table_find_active(prepare->methods->jobs->table, domain->uuid);

  if (busy)
    reply_error(prepare->call, "DomainBusy", json_pack("{ss ss}", "domain", domain->name, "job", busy->id));
  return !busy;
}

static bool goals_fit(Prepare *prepare, const Goals *goals) {
  if (!prepare->make_disks || mig_policy_get(&goals->policy, MIG_POLICY_COPY_DISKS) == MIG_COPY_DISKS_ALL)
    return true;
  reply_error(prepare->call, "InvalidPolicy",
              json_pack("{ss ss}", "key", "copy_disks", "message",
                        "images created by make_disks are empty: copy_disks must be all"));
  return false;
}

static void on_visited(gpointer task, const GError *error, gpointer user_data) {
  g_autoptr(Prepare) prepare = user_data;
  Methods *methods = prepare->methods;
  Visit *visit = task;
  g_autofree MigCheckReport *report = NULL; /* too large for the stack */
  uint64_t reserved_bytes;
  MigCheckInput input;
  Survey *survey;
  unsigned incoming;
  Goals goals;
  Job *job;

  if (!has_facts(prepare, visit, error) ||
      request_answer_known(methods->requests, prepare->call, &prepare->key))
    return;
  survey = visit->survey;
  if (!is_free(prepare, &survey->domain) || cordon_refuse(methods->node, prepare->call) ||
      !params_resolve_goals(methods->requests, prepare->call, &prepare->asked, &survey->domain, &goals) ||
      !goals_fit(prepare, &goals))
    return;
  incoming = incoming_count(methods->mover, &reserved_bytes);
  if (survey->target.free_bytes != UINT64_MAX)
    survey->target.free_bytes -= MIN(survey->target.free_bytes, reserved_bytes);
  place_disks(survey, &goals.policy);
  input =
      (MigCheckInput){.target_uri = hypervisor_get_uri(methods->mover->hypervisor), .policy = &goals.policy};
  survey_fill(survey, &input);
  report = g_new0(MigCheckReport, 1);
  mig_check(&input, report);
  job = make_job(prepare, &survey->domain, &goals);
  add_findings(methods, job, report, incoming, reserved_bytes);
  if (is_refused(job)) {
    reply_error(prepare->call, "Refused", json_pack("{so}", "findings", job_findings_to_json(job)));
    job_free(job);
    return;
  }
  if (prepare->make_disks)
    plan_images(job, survey);
  methods->jobs->starting--;
  prepare->counted = false;
  incoming_accept(methods->mover, job, on_ready, g_steal_pointer(&prepare));
}

/* --- answers without a wait --- */

static bool take_source(Prepare *prepare, json_t *parameters) {
  const char *source = json_string_of(parameters, "source");
  TargetParam place;

  if (!params_find_place(prepare->methods->requests, prepare->call, source, &place))
    return false;
  prepare->source = g_strdup(source);
  prepare->source_uri = g_strdup(place.libvirt_uri);
  return true;
}

static bool take_timeout(Prepare *prepare, json_t *parameters) {
  json_t *value = json_object_get(parameters, "timeout_s");
  json_int_t seconds = json_integer_value(value);

  prepare->timeout_ms = prepare->methods->config->lease_timeout_ms;
  if (!json_is_integer(value))
    return true;
  if (seconds < 1 || seconds > TIMEOUT_MAX_S) {
    varlink_call_invalid_parameter(prepare->call, "timeout_s");
    return false;
  }
  prepare->timeout_ms = (uint64_t)seconds * 1000;
  return true;
}

void methods_prepare(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  g_autoptr(Prepare) prepare = g_new0(Prepare, 1);
  Methods *methods = user_data;
  Visit *visit;

  prepare->methods = methods;
  prepare->asked_ms = clock_now_ms();
  methods->jobs->starting++;
  prepare->counted = true;
  prepare->call = varlink_call_ref(call);
  prepare->domain = g_strdup(json_string_of(parameters, "domain"));
  prepare->make_disks = json_bool_of(parameters, "make_disks");
  if (!request_key_take(call, parameters, &prepare->key) ||
      request_answer_known(methods->requests, call, &prepare->key) || cordon_refuse(methods->node, call) ||
      !take_source(prepare, parameters) || !take_timeout(prepare, parameters) ||
      !params_take_goals(methods->requests, call, parameters, &prepare->asked) ||
      !request_has_room(methods->requests, call))
    return;
  prepare->caller = caller_new(varlink_call_get_peer(call));
  visit = g_new0(Visit, 1);
  visit->source_uri = g_strdup(prepare->source_uri);
  visit->domain = g_strdup(prepare->domain);
  visit->connect_timeout_ms = methods->config->connect_timeout_ms;
  visit->survey = survey_new();
  local_calls_run(methods->mover->local_calls,
                  &(LocalCall){.run = make_visit,
                               .task = visit,
                               .free_task = visit_free,
                               /* On top of the timeout that every call has. */
                               .extra_ms = SURVEY_MS - MIN(SURVEY_MS, methods->config->connect_timeout_ms)},
                  on_visited, g_steal_pointer(&prepare));
}

void methods_release(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  const char *text = json_string_of(parameters, "lease");
  g_autoptr(Caller) caller = caller_new(varlink_call_get_peer(call));
  Methods *methods = user_data;
  Job *job = reply_find_job(methods->requests, call, text);

  if (!job)
    return;
  if (!job->lease)
    reply_error(call, "NoSuchJob", json_pack("{ss}", "job", text));
  else if (job_is_final(job) || incoming_release(methods->mover, job, caller))
    reply_when_saved(methods->requests, job, call);
  else
    reply_refuse_abort(call, job, LIFECYCLE_ABORT_INCOMING);
}
