/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* GetNode: the state of this node. */
#include "agent/method/methods.h"

#include "agent/base/policyjson.h"
#include "agent/move/hangs.h"
#include "agent/move/incoming.h"
#include "agent/move/link.h"
#include "agent/request/reply.h"

#include <inttypes.h>

static char *format_version(uint64_t version) {
  return g_strdup_printf("%" PRIu64 ".%" PRIu64 ".%" PRIu64, version / 1000000, version / 1000 % 1000,
                         version % 1000);
}

static json_t *config_targets(const Config *config) {
  json_t *targets = json_array();

  for (guint i = 0; i < config->targets->len; i++) {
    const ConfigTarget *target = config->targets->pdata[i];
    json_t *object = json_pack("{ss ss}", "name", target->name, "libvirt_uri", target->libvirt_uri);

    if (target->migrate_uri)
      json_object_set_new(object, "migrate_uri", json_string(target->migrate_uri));
    json_array_append_new(targets, object);
  }
  return targets;
}

static json_t *learned_links(const Methods *methods) {
  const GPtrArray *targets = methods->config->targets;
  json_t *links = json_array();

  for (guint i = 0; i < targets->len; i++) {
    const ConfigTarget *target = targets->pdata[i];
    MigLinkFacts link;
    json_t *object;

    link_recall(methods->mover, target->libvirt_uri, &link);
    if (link.bandwidth_bytes_per_s == 0 && link.switch_ms == 0)
      continue;
    object = json_pack("{ss}", "target", target->name);
    if (link.bandwidth_bytes_per_s > 0)
      json_object_set_new(object, "bandwidth_bytes_per_s",
                          json_integer((json_int_t)link.bandwidth_bytes_per_s));
    if (link.switch_ms > 0)
      json_object_set_new(object, "switch_ms", json_integer((json_int_t)link.switch_ms));
    json_array_append_new(links, object);
  }
  return links;
}

/* Leases whose domain has not come yet are pending, but not in the queue. */
static unsigned count_leases(const Methods *methods) {
  const GPtrArray *all = job_table_all(methods->jobs->table);
  unsigned n = 0;

  for (guint i = 0; i < all->len; i++) {
    const Job *job = all->pdata[i];

    n += job->lease && job->phase == MIG_PHASE_PENDING;
  }
  return n;
}

void methods_get_node(VarlinkCall *call, json_t *parameters, gpointer user_data) {
  Methods *methods = user_data;
  const HypervisorState *state = hypervisor_get_state(methods->mover->hypervisor);
  const Config *config = methods->config;
  json_t *policies = json_array();
  json_t *warnings = json_array();
  g_autofree char *incoming_at = incoming_uri(methods->mover);
  uint64_t reserved_bytes;
  unsigned incoming = incoming_count(methods->mover, &reserved_bytes);
  const Profiling *profiling;
  json_t *node, *changes;

  for (guint i = 0; i < config->policies->len; i++)
    json_array_append_new(policies, json_string(((ConfigPolicy *)config->policies->pdata[i])->name));
  for (guint i = 0; i < config->warnings->len; i++)
    json_array_append_new(warnings, json_string(config->warnings->pdata[i]));
  node = json_pack(
      "{ss ss ss sb si si si si so so so so sI}", "hostname", methods->mover->hostname, "agent_version",
      HANDOFFD_VERSION, "libvirt_uri", hypervisor_get_uri(methods->mover->hypervisor), "libvirt_reachable",
      (int)state->reachable, "max_outgoing", (int)config->max_outgoing, "outgoing_running",
      (int)job_queue_count_running(methods->jobs->queue), "pending",
      (int)(job_table_count_pending(methods->jobs->table) - count_leases(methods)), "finished_kept",
      (int)job_table_count_final(methods->jobs->table), "targets", config_targets(config), "policy",
      policy_to_json(&config->node_policy.policy, POLICY_ALL_KEYS), "policies", policies, "warnings",
      warnings, "started_usec_realtime", (json_int_t)methods->node->started_usec);
  json_object_set_new(node, "max_incoming", json_integer(config->max_incoming));
  json_object_set_new(node, "incoming", json_integer(incoming));
  json_object_set_new(node, "reserved_bytes", json_integer((json_int_t)reserved_bytes));
  json_object_set_new(node, "incoming_uri", json_string(incoming_at));
  if (state->reachable) {
    g_autofree char *libvirt = format_version(state->facts.libvirt_version);
    g_autofree char *hypervisor = format_version(state->facts.hypervisor_version);

    json_object_set_new(node, "libvirt_version", json_string(libvirt));
    json_object_set_new(node, "hypervisor_version", json_string(hypervisor));
  }
  if (config->max_bandwidth_bytes_per_s > 0)
    json_object_set_new(node, "max_bandwidth_bytes_per_s",
                        json_integer((json_int_t)config->max_bandwidth_bytes_per_s));
  profiling = profiler_count(methods->node->profiler);
  json_object_set_new(node, "profiling",
                      json_pack("{si si sI}", "measured", (int)profiling->measured, "failed",
                                (int)profiling->failed, "took_ms", (json_int_t)profiling->took_ms));
  json_object_set_new(node, "learned", learned_links(methods));
  changes = evaluator_count_to_json(methods->node->evaluator);
  if (changes)
    json_object_set_new(node, "pending_changes", changes);
  if (methods->node->cordon.on)
    json_object_set_new(node, "cordon", cordon_to_json(&methods->node->cordon));
  if (methods->drains->drain)
    json_object_set_new(node, "drain", drain_to_json(methods->drains));
  if (hangs_count(methods->mover->hangs) > 0 && reply_may_read_jobs(methods->requests, call))
    json_object_set_new(node, "hanging", hangs_to_json(methods->mover->hangs, NULL));
  if (damaged_count(methods->jobs->damaged) > 0 && reply_may_read_jobs(methods->requests, call))
    json_object_set_new(node, "damaged_records", damaged_to_json(methods->jobs->damaged));
  varlink_call_reply(call, node, false);
}
