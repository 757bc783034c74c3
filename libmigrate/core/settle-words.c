/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What settling says: evidence by name, what stays behind, why a word is refused. */
#include "libmigrate/core/settle-private.h"

#include "libmigrate/core/table.h"

static const char *const evidence_names[] = {
    "no migration job",
    "stopped by the migration at the source",
    "alive at the source",
    "defined at the source",
    "inactive at the source",
    "no copy at the target",
    "inactive at the target",
    "alive at the target",
    "defined at the target",
    "never ran at the target",
    "not reported as completed",
    "ran before the migration",
    "defined at the target by the migration",
    "source definition to be removed",
    "post-copy interrupted",
    "seen twice",
    "both ends watched without a gap",
    "the same copy at the source",
};
TABLE_COVERS(evidence_names, MIG_EVIDENCE_BITS);

const char *mig_evidence_name(MigEvidence bit) {
  for (int i = 0; i < MIG_EVIDENCE_BITS; i++)
    if ((unsigned)bit == 1u << i)
      return evidence_names[i];
  return NULL;
}

/* The target has a definition that was not there before. */
static bool may_have_defined(const MigSettle *settle) {
  return settle->last.target == MIG_END_INACTIVE && settle->record.persist_target &&
         settle->record.target_was_absent;
}

/* What is left behind although the outcome is known. */
const char *settle_what_is_left(const MigSettle *settle, MigVerdict verdict, MigTouch touch) {
  MigEndState source = settle->last.source;
  bool holds_a_copy = source != MIG_END_ABSENT && source != MIG_END_INACTIVE;

  if (touch == MIG_TOUCH_UNDEFINE_TARGET)
    return "could not remove the definition that the failed migration left at the target: undefine it there";
  if (touch == MIG_TOUCH_UNDEFINE_SOURCE)
    return "could not remove the definition that the migration left at the source: undefine it there";
  if (verdict == MIG_VERDICT_SUCCEEDED && holds_a_copy)
    return settle->record.undefine_source && settle->last.source_defined
               ? "the source still holds the guest's stopped old copy: destroy and undefine it there, never "
                 "resume it"
               : "the source still holds the guest's stopped old copy: destroy it there, never resume it";
  if (verdict == MIG_VERDICT_AT_SOURCE && settle->record.seen_there)
    return "the target also had the guest for a time and no longer has it: libvirt resumed the source's "
           "copy, which is older than the one that ran there; check its disks";
  if ((verdict == MIG_VERDICT_GONE || verdict == MIG_VERDICT_LEFT) && holds_a_copy)
    return "the source still holds a copy of the guest that cannot run: destroy it there once you have "
           "looked at it, never resume it";
  if (verdict == MIG_VERDICT_AT_SOURCE && may_have_defined(settle))
    return "the target has a definition of the domain, which the failed migration may have left there: the "
           "agent did not watch without a gap, so it leaves it alone. If nobody else created it, undefine it "
           "there";
  if (verdict == MIG_VERDICT_SUCCEEDED && source == MIG_END_INACTIVE && settle->record.undefine_source)
    return "the source still has a definition of the domain, which libvirt was asked to remove: the agent "
           "did not watch without a gap, or the target has none, so it leaves it alone. If it is not needed, "
           "undefine it there";
  return NULL;
}

const char *mig_settle_refuse_word(const MigSettleRecord *record, bool it_ran) {
  if (!it_ran && record->seen_there)
    return "the agent itself saw the guest at the target";
  if (!it_ran && record->completed)
    return "libvirt reported that the migration completed";
  if (it_ran ? record->told_it_stayed : record->told_it_ran)
    return "the opposite was stated before";
  return NULL;
}
