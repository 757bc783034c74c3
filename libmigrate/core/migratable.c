/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Walks the table of checks and collects the findings.
 *
 * All rows are always tried, so that an operator can fix everything in one go. A blocker rests on evidence: libvirt
 * or QEMU is known to refuse, or the target showed it. What the source cannot see is a warning, not a blocker, and is
 * never silently ignored. */
#include "libmigrate/core/migratable.h"

#include "libmigrate/core/rules.h"
#include "libmigrate/core/table.h"

#include <stdio.h>
#include <string.h>

static MigFinding *next_finding(MigCheckReport *report) {
  return report->count < MIG_FINDINGS_MAX ? &report->findings[report->count++] : NULL;
}

static void set_text(char *ret_text, size_t size, const char *text, size_t length) {
  snprintf(ret_text, size, "%.*s", (int)length, text);
}

/* Messages of policy rules have no capital and no full stop. */
static void set_sentence(char *ret_text, size_t size, const char *text, size_t length) {
  set_text(ret_text, size - 1, text, length);
  if (ret_text[0] >= 'a' && ret_text[0] <= 'z')
    ret_text[0] = (char)(ret_text[0] - 'a' + 'A');
  strcat(ret_text, ".");
}

static void try_row(const MigCheckInput *in, const RuleRow *row, MigCheckReport *report) {
  char seen[MIG_FINDING_SEEN_SIZE];
  Text text = {.text = seen, .size = sizeof seen};
  MigFinding *finding;
  if (row->of_target && !in->target)
    return;
  if (!row->test(in, row->argument, row->lead, &text) || !(finding = next_finding(report)))
    return;
  report->avoid_post_copy |= row->avoids_post_copy;
  finding->code = row->info.code;
  finding->blocks = row->info.blocks;
  finding->transient = row->info.transient;
  finding->cause = row->info.cause;
  memcpy(finding->seen, seen, sizeof seen);
  set_text(finding->remedy, sizeof finding->remedy, row->info.remedy, strlen(row->info.remedy));
}

static void try_rows(const MigCheckInput *in, bool blocks, MigCheckReport *report) {
  for (int i = 0; i < MIG_CHECK_COUNT; i++)
    if (rules_row((MigCheck)i)->info.blocks == blocks)
      try_row(in, rules_row((MigCheck)i), report);
}

void mig_check_policy_facts(const MigCheckInput *input, MigPolicyFacts *ret_facts) {
  *ret_facts = (MigPolicyFacts){
      .passthrough = input->domain->passthrough,
      .local_disks = input->domain->local_disks > 0,
      .qemu_version = rules_qemu_version(input),
      .libvirt_version = rules_libvirt_version(input),
  };
}

/* A conflict's message reads "what excludes what, and why: set …". */
static void add_conflict(const MigConflict *conflict, MigCheckReport *report) {
  static const char separator[] = ": set ";
  MigFinding *finding = next_finding(report);
  const char *remedy = strstr(conflict->message, separator);
  if (!finding)
    return;
  *finding = (MigFinding){.code = conflict->code, .blocks = true, .cause = MIG_CAUSE_POLICY_CONFLICT};
  set_sentence(finding->seen, sizeof finding->seen, conflict->message,
               remedy ? (size_t)(remedy - conflict->message) : strlen(conflict->message));
  if (remedy)
    set_sentence(finding->remedy, sizeof finding->remedy, remedy + 2, strlen(remedy + 2));
}

static void try_policy(const MigCheckInput *in, MigCheckReport *report) {
  const MigConflict *conflicts[MIG_FINDINGS_MAX - MIG_CHECK_COUNT];
  MigPolicyFacts facts;
  size_t count;
  mig_check_policy_facts(in, &facts);
  /* Without the target's answer, the lower versions are not known. */
  if (!in->target)
    facts.qemu_version = facts.libvirt_version = UINT64_MAX;
  count = mig_policy_conflicts(in->policy, &facts, conflicts, TABLE_LENGTH(conflicts));
  for (size_t i = 0; i < count && i < TABLE_LENGTH(conflicts); i++)
    add_conflict(conflicts[i], report);
}

void mig_check(const MigCheckInput *input, MigCheckReport *ret_report) {
  ret_report->count = 0;
  ret_report->avoid_post_copy = false;
  try_rows(input, true, ret_report);
  try_policy(input, ret_report);
  ret_report->blockers = ret_report->count;
  try_rows(input, false, ret_report);
}

bool mig_check_may_wait(const MigCheckReport *report) {
  for (size_t i = 0; i < report->blockers; i++)
    if (!report->findings[i].transient)
      return false;
  return report->blockers > 0;
}

MigCause mig_check_cause(const MigCheckReport *report) {
  for (size_t i = 0; i < report->blockers; i++)
    if (!report->findings[i].transient)
      return report->findings[i].cause;
  return report->blockers > 0 ? report->findings[0].cause : MIG_CAUSE_NONE;
}

void mig_check_describe(const MigCheckReport *report, char *ret_text, size_t size) {
  Text text = {.text = ret_text, .size = size};
  if (size > 0)
    ret_text[0] = '\0';
  for (size_t i = 0; i < report->blockers; i++) {
    const MigFinding *finding = &report->findings[i];
    text_add(&text, "%s%s: %s %s", i > 0 ? " " : "", finding->code, finding->seen, finding->remedy);
  }
}
