/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Fuzzes what a libvirtd can say of a domain, of its host and of its emulator, and the checks on that. The same bytes
 * are tried as each of the three. */
#include "fuzz.h"

#include "libmigrate/core/migratable.h"
#include "libmigrate/virt/xml.h"

#include <stdlib.h>
#include <string.h>

static void must(bool condition) {
  if (!condition)
    abort();
}

static void must_be_text(const char *text, size_t size) {
  must(memchr(text, '\0', size) != NULL);
}

/* A finding is a code of the table, and sentences that end. */
static void must_be_findings(const MigCheckReport *report) {
  must(report->count <= MIG_FINDINGS_MAX && report->blockers <= report->count);
  for (size_t i = 0; i < report->count; i++) {
    must(report->findings[i].blocks == (i < report->blockers));
    must_be_text(report->findings[i].seen, MIG_FINDING_SEEN_SIZE);
    must_be_text(report->findings[i].remedy, MIG_FINDING_REMEDY_SIZE);
  }
}

static MigStorage look(const char *path, gpointer user_data) {
  return (MigStorage)(strlen(path) % 3);
}

static void try_checks(const char *text, MigDomainFacts *domain, MigHostFacts *host) {
  static const MigSight sights[] = {MIG_SIGHT_UNSEEN, MIG_SIGHT_ABSENT, MIG_SIGHT_PRESENT};
  g_autofree MigCheckReport *report = g_new0(MigCheckReport, 1);
  g_auto(MigTargetFacts) target = {0};
  MigPolicy policy;
  MigCheckInput input = {.domain = domain, .source = host, .target_uri = "x", .policy = &policy};
  char words[64];

  mig_policy_init(&policy);
  policy.values[MIG_POLICY_COPY_DISKS] = strlen(text) % MIG_COPY_DISKS_COUNT;
  mig_target_facts_init(&target, domain);
  mig_domain_capabilities_apply(text, domain, &target);
  mig_check(&input, report);
  must_be_findings(report);
  input.target = &target;
  for (size_t round = 0; round < G_N_ELEMENTS(sights); round++) {
    for (size_t i = 0; i < target.n_needs; i++)
      target.needs[i] = sights[round];
    for (size_t i = 0; i < target.n_disks; i++)
      target.disks[i].sight = sights[round];
    target.emulator = target.virt_type = target.machine = sights[round];
    mig_check(&input, report);
    must_be_findings(report);
  }
  mig_check_describe(report, words, sizeof words);
  must_be_text(words, sizeof words);
}

/* Compared with itself nothing changes; with another one, what is told fits its place. */
static void try_changes(const char *text) {
  g_auto(MigDefinition) definition = {0}, other = {0};
  MigChange changes[8];
  size_t n;

  if (!mig_definition_parse(text, &definition, NULL))
    return;
  must(mig_changes(&definition, &definition, NULL, 0) == 0);
  must(mig_definition_parse(
      "<domain><vcpu>3</vcpu><devices><disk><target dev='vda'/></disk></devices></domain>", &other, NULL));
  n = mig_changes(&definition, &other, changes, G_N_ELEMENTS(changes));
  must(mig_changes(&definition, &other, NULL, 0) == n);
  for (size_t i = 0; i < MIN(n, G_N_ELEMENTS(changes)); i++) {
    must(changes[i].code && changes[i].item && changes[i].remedy < MIG_REMEDY_COUNT);
    must_be_text(changes[i].live, sizeof changes[i].live);
    must_be_text(changes[i].next, sizeof changes[i].next);
    must_be_text(changes[i].message, sizeof changes[i].message);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  g_autofree char *text = g_strndup((const char *)data, size);
  G_GNUC_UNUSED g_autofree char *machines = mig_capabilities_describe_machines(text, "x86_64", "pc-q35-7.2");
  g_auto(MigDomainFacts) domain = {0};
  g_auto(MigHostFacts) host = {0};

  try_changes(text);
  if (mig_capabilities_parse(text, &host, NULL))
    must(host.n_pages <= MIG_PAGE_SIZES_MAX && host.security_models);
  if (mig_domain_xml_parse(text, &domain, NULL)) {
    char **names = mig_domain_local_disks(&domain);

    must(g_strv_length(names) == domain.local_disks);
    mig_storage_classify(&domain, look, NULL);
    for (size_t i = 0; i < domain.n_disks; i++)
      must(domain.disks[i].target != NULL);
    for (size_t i = 0; i < domain.n_needs; i++)
      must(domain.needs[i].name && *domain.needs[i].name);
    for (size_t i = 0; i < domain.n_traits; i++)
      must(domain.traits[i].text != NULL);
    try_checks(text, &domain, &host);
  }
  return 0;
}
