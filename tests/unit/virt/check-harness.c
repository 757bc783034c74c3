/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs all checks on a domain's XML and on what hosts are scripted to answer. */
#include "tests/unit/virt/check-harness.h"

#include "libmigrate/virt/xml.h"
#include "tests/fake/fake-survey.h"
#include "tests/fake/fake-world.h"
#include "tests/unit/virt/cmocka-all.h"

static void read_policy(const char *words, MigPolicy *ret_policy) {
  g_auto(GStrv) list = g_strsplit(words ? words : "", " ", -1);
  char message[200];

  mig_policy_init(ret_policy);
  for (char **word = list; *word; word++) {
    char *equals = strchr(*word, '=');

    if (!equals)
      continue;
    *equals = '\0';
    assert_int_equal(mig_policy_set_text(ret_policy, *word, equals + 1, message, sizeof message),
                     MIG_POLICY_OK);
  }
}

static MigEndState state_of(json_t *object, const char *key, MigEndState fallback) {
  const char *name = json_string_value(json_object_get(object, key));

  return name ? fake_end_state(name) : fallback;
}

/* Hosts differ unless the script says otherwise. */
static void read_host(json_t *host, const char *uuid, MigHostFacts *ret_facts) {
  json_t *libvirt = json_object_get(host, "libvirt_version");
  json_t *hypervisor = json_object_get(host, "hypervisor_version");
  json_t *said = json_object_get(host, "uuid");

  assert_true(fake_survey_host(host, ret_facts, NULL));
  g_strlcpy(ret_facts->uuid, said ? json_string_value(said) : uuid, sizeof ret_facts->uuid);
  ret_facts->libvirt_version = libvirt ? (uint64_t)json_integer_value(libvirt) : 9000000;
  ret_facts->hypervisor_version = hypervisor ? (uint64_t)json_integer_value(hypervisor) : 7002000;
}

void check_run(json_t *domain, json_t *source, json_t *target, const char *policy,
               MigCheckReport *ret_report) {
  const char *away = json_string_value(json_object_get(target, "unreachable"));
  const char *refused = json_string_value(json_object_get(target, "refuses"));
  g_auto(MigDomainFacts) domain_facts = {0};
  g_auto(MigHostFacts) source_facts = {0};
  g_auto(MigTargetFacts) target_facts = {0};
  g_autoptr(GError) error = NULL;
  MigPolicy goals;
  MigCheckInput input = {
      .domain = &domain_facts,
      .source = &source_facts,
      .target = away || refused ? NULL : &target_facts,
      .target_uri = "qemu+tcp://node-b/system",
      .target_error = away ? away : refused,
      .target_away = away != NULL,
      .cordon = json_string_value(json_object_get(source, "cordon")),
      .busy_job = json_string_value(json_object_get(source, "busy_job")),
      .policy = &goals,
  };

  read_policy(policy, &goals);
  if (!fake_survey_parse(domain, source, &domain_facts, &error))
    fail_msg("the domain's XML is bad: %s", error ? error->message : "there is none");
  domain_facts.state = state_of(domain, "state", MIG_END_RUNNING);
  fake_survey_domain(domain, source, &domain_facts);
  read_host(source, "aaaaaaaa-0000-4000-8000-000000000001", &source_facts);
  mig_target_facts_init(&target_facts, &domain_facts);
  read_host(target, "bbbbbbbb-0000-4000-8000-000000000002", &target_facts.host);
  target_facts.domain_state = state_of(target, "domain_state", MIG_END_ABSENT);
  fake_survey_target(target, &domain_facts, &source_facts, &target_facts);
  mig_check(&input, ret_report);
}

const MigFinding *check_find(const MigCheckReport *report, const char *code) {
  for (size_t i = 0; i < report->count; i++)
    if (strcmp(report->findings[i].code, code) == 0)
      return &report->findings[i];
  return NULL;
}

char *check_codes(const MigCheckReport *report) {
  GString *text = g_string_new(NULL);

  for (size_t i = 0; i < report->count; i++) {
    if (i == report->blockers)
      g_string_append(text, text->len > 0 ? " | " : "| ");
    else if (i > 0)
      g_string_append_c(text, ' ');
    g_string_append(text, report->findings[i].code);
  }
  return g_string_free(text, FALSE);
}
