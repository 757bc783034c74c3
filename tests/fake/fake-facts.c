/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The fake's answers to what is asked of hosts and domains. */
#include "tests/fake/fake-private.h"

#include "libmigrate/virt/xml.h"
#include "tests/fake/fake-survey.h"

#include <string.h>

/* With the world's lock held. */
static bool host_facts(FakeWorld *world, const char *name, MigHostFacts *ret_facts, GError **error) {
  json_t *host = fake_world_host(world, name), *value = json_object_get(host, "uuid");
  g_autofree char *hostname = g_strdup_printf("node-%s", name);

  if (!fake_survey_host(host, ret_facts, error))
    return false;
  if (value) {
    g_strlcpy(ret_facts->uuid, json_string_value(value), sizeof ret_facts->uuid);
  } else {
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA1, name, -1);

    g_snprintf(ret_facts->uuid, sizeof ret_facts->uuid, "%.8s-%.4s-4%.3s-9%.3s-%.12s", hash, hash + 8,
               hash + 12, hash + 15, hash + 18);
  }
  value = json_object_get(host, "hostname");
  ret_facts->hostname = mig_store_string(ret_facts->store, value ? json_string_value(value) : hostname);
  ret_facts->libvirt_version =
      json_object_get(host, "libvirt_version") ? (uint64_t)fake_integer(host, "libvirt_version") : 9000000;
  ret_facts->hypervisor_version = json_object_get(host, "hypervisor_version")
                                      ? (uint64_t)fake_integer(host, "hypervisor_version")
                                      : 7002000;
  return true;
}

bool fake_host_facts(MigConn *conn, MigHostFacts *ret_facts, GError **error) {
  return fake_enter(conn, "host_facts", NULL, error) &&
         fake_leave(conn, host_facts(conn->world, conn->host, ret_facts, error));
}

/* By name, so that the order is the same each time. */
static gint compare_active(gconstpointer a, gconstpointer b) {
  return strcmp((*(MigActiveDomain *const *)a)->name, (*(MigActiveDomain *const *)b)->name);
}

GPtrArray *fake_list_active(MigConn *conn, GError **error) {
  GPtrArray *list;
  GHashTableIter iter;
  gpointer value;

  if (!fake_enter(conn, "list_active", NULL, error))
    return NULL;
  list = g_ptr_array_new_with_free_func(mig_active_domain_free);
  g_hash_table_iter_init(&iter, conn->world->domains);
  while (g_hash_table_iter_next(&iter, NULL, &value)) {
    const FakeDomain *domain = value;
    MigEndState state = fake_domain_state_at(domain, conn->host);
    MigActiveDomain *active;

    if (state == MIG_END_ABSENT || state == MIG_END_INACTIVE)
      continue;
    active = g_new0(MigActiveDomain, 1);
    g_strlcpy(active->uuid, domain->uuid, sizeof active->uuid);
    active->name = g_strdup(domain->name);
    g_ptr_array_add(list, active);
  }
  g_ptr_array_sort(list, compare_active);
  fake_leave(conn, true);
  return list;
}

static json_t *domain_script(FakeWorld *world, const FakeDomain *domain) {
  return json_object_get(json_object_get(world->control, "domains"), domain->name);
}

static void read_tags(FakeWorld *world, const FakeDomain *domain, MigDomainTags *ret_tags) {
  json_t *object = json_object_get(json_object_get(world->control, "domains"), domain->name);
  const char *path;
  json_t *value;

  ret_tags->title = g_strdup(json_string_value(json_object_get(object, "title")));
  json_object_foreach (json_object_get(object, "metadata"), path, value)
    mig_domain_tags_add(ret_tags, path, json_string_value(value));
}

/* With the world's lock held. What the XML says, if there is one, and for the rest what the control file does. */
static bool domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error) {
  FakeDomain *domain = fake_find(conn, name_or_uuid, error);
  MigDomainFacts facts = {0};
  json_t *script;

  if (!domain)
    return false;
  script = domain_script(conn->world, domain);
  if (json_object_get(script, "xml")) {
    if (!fake_survey_parse(script, fake_world_host(conn->world, conn->host), &facts, error))
      return false;
  } else {
    facts = (MigDomainFacts){
        .store = mig_store_new(),
        .emulator = "/usr/bin/qemu-system-x86_64",
        .machine = "pc-q35-7.2",
        .arch = "x86_64",
        .virt_type = "kvm",
        .vcpus = 1,
        .local_disk_bytes = (uint64_t)domain->local_disk,
        .local_disks = (unsigned)domain->local_disks,
        .passthrough = domain->passthrough,
    };
  }
  facts.name = mig_store_string(facts.store, domain->name);
  facts.state = fake_domain_state_at(domain, conn->host);
  facts.persistent = fake_domain_defined(domain, conn->host);
  facts.memory_bytes = (uint64_t)domain->memory;
  g_strlcpy(facts.uuid, domain->uuid, sizeof facts.uuid);
  read_tags(conn->world, domain, &facts.tags);
  if (domain->profile)
    mig_profile_parse(domain->profile, &facts.profile);
  *ret_facts = facts;
  return true;
}

bool fake_domain_facts(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts, GError **error) {
  return fake_enter(conn, "domain_facts", NULL, error) &&
         fake_leave(conn, domain_facts(conn, name_or_uuid, ret_facts, error));
}

bool fake_survey_domain_op(MigConn *conn, const char *name_or_uuid, MigDomainFacts *ret_facts,
                           GError **error) {
  FakeDomain *domain;

  if (!fake_enter(conn, "survey_domain", NULL, error))
    return false;
  if (!domain_facts(conn, name_or_uuid, ret_facts, error))
    return fake_leave(conn, false);
  domain = fake_find(conn, name_or_uuid, NULL);
  fake_survey_domain(domain_script(conn->world, domain), fake_world_host(conn->world, conn->host), ret_facts);
  if (domain->job.phase != FAKE_PHASE_NONE)
    ret_facts->job = "outgoing migration";
  return fake_leave(conn, true);
}

static bool parse_definition(const char *xml, MigDefinition *ret_definition, GError **error) {
  return mig_definition_parse(xml ? xml : "<domain/>", ret_definition, error);
}

static bool definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                        GError **error) {
  FakeDomain *domain = fake_find(conn, name_or_uuid, error);
  json_t *script = domain ? domain_script(conn->world, domain) : NULL;
  const char *xml = json_string_value(json_object_get(script, "xml"));
  const char *next_xml = json_string_value(json_object_get(script, "next_xml"));
  g_auto(MigDefinitions) found = {0};
  MigEndState state;

  if (!domain)
    return false;
  state = fake_domain_state_at(domain, conn->host);
  found.running = state != MIG_END_INACTIVE && state != MIG_END_ABSENT;
  found.persistent = fake_domain_defined(domain, conn->host);
  found.name = g_strdup(domain->name);
  g_strlcpy(found.uuid, domain->uuid, sizeof found.uuid);
  if (!parse_definition(xml, &found.live, error) ||
      !parse_definition(found.running && found.persistent && next_xml ? next_xml : xml, &found.next, error))
    return false;
  *ret_definitions = found;
  found = (MigDefinitions){0};
  return true;
}

bool fake_definitions(MigConn *conn, const char *name_or_uuid, MigDefinitions *ret_definitions,
                      GError **error) {
  return fake_enter(conn, "definitions", NULL, error) &&
         fake_leave(conn, definitions(conn, name_or_uuid, ret_definitions, error));
}

static bool survey_target(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                          MigTargetFacts *ret_facts, GError **error) {
  FakeDomain *here = fake_world_domain(conn->world, NULL, domain->uuid);
  json_t *said = here ? fake_world_said_state(conn->world, here, conn->host) : NULL;
  g_auto(MigTargetFacts) facts = {0};
  json_t *host;

  mig_target_facts_init(&facts, domain);
  if (!host_facts(conn->world, conn->host, &facts.host, error))
    return false;
  if (said && g_strcmp0(json_string_value(said), "error") == 0)
    return fake_refuse(error, MIG_VIRT_ERROR_FAILED, "scripted: no status");
  facts.domain_state = said   ? fake_end_state(json_string_value(said))
                       : here ? fake_domain_state_at(here, conn->host)
                              : MIG_END_ABSENT;
  host = fake_world_host_now(conn->world, conn->host);
  fake_survey_target(host, domain, source, &facts);
  json_decref(host);
  *ret_facts = facts;
  facts = (MigTargetFacts){0};
  return true;
}

bool fake_survey_target_op(MigConn *conn, const MigDomainFacts *domain, const MigHostFacts *source,
                           MigTargetFacts *ret_facts, GError **error) {
  return fake_enter(conn, "survey_target", NULL, error) &&
         fake_leave(conn, survey_target(conn, domain, source, ret_facts, error));
}

static bool read_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error) {
  FakeDomain *domain = fake_world_domain(conn->world, NULL, uuid);
  MigDomainStatus status = {.state = MIG_END_ABSENT};

  if (domain) {
    bool outgoing = domain->job.phase != FAKE_PHASE_NONE && strcmp(domain->job.source, conn->host) == 0;
    bool incoming = domain->job.phase != FAKE_PHASE_NONE && strcmp(domain->job.target, conn->host) == 0;
    json_t *said = fake_world_said_state(conn->world, domain, conn->host);

    if (said && g_strcmp0(json_string_value(said), "error") == 0)
      return fake_refuse(error, MIG_VIRT_ERROR_FAILED, "scripted: no status");
    status.state = said ? fake_end_state(json_string_value(said)) : fake_domain_state_at(domain, conn->host);
    status.persistent = fake_domain_defined(domain, conn->host);
    status.start_failed =
        status.state == MIG_END_INACTIVE && g_strcmp0(domain->host, conn->host) != 0 && domain->start_failed;
    status.job_active = outgoing || incoming;
    status.job_outgoing = outgoing;
    if (status.job_active)
      status.job_elapsed_ms = (uint64_t)((g_get_monotonic_time() - domain->job.start_us) / 1000);
    status.id = status.state == MIG_END_ABSENT || status.state == MIG_END_INACTIVE ? 0 : 1;
    status.booted = status.state == MIG_END_RUNNING && domain->booted;
    status.migrated = status.state == MIG_END_RUNNING && !domain->booted &&
                      g_strcmp0(domain->final_target, conn->host) == 0;
  }
  *ret_status = status;
  return true;
}

bool fake_domain_status(MigConn *conn, const char *uuid, MigDomainStatus *ret_status, GError **error) {
  if (!fake_enter(conn, "domain_status", NULL, error))
    return false;
  return fake_leave(conn, read_status(conn, uuid, ret_status, error));
}

bool fake_guard_pass(MigConn *conn, const char *uuid, const MigGuard *guard, GError **error) {
  json_t *fault = json_object_get(fake_world_knob(conn->world, conn->host, "domain_status"), "fail");
  MigDomainStatus status;

  if (guard && fault) {
    fake_set_scripted(error, fake_error(json_string_value(fault)), "domain_status", NULL);
    return false;
  }
  return !guard || (read_status(conn, uuid, &status, error) && guard->may(&status, guard->user_data, error));
}
