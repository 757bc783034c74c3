/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ledger of known faults: what released versions of libvirt and QEMU do wrong to a migration, and when.
 *
 * Each row names the versions that were seen to have the fault (tests/lab/known-faults shows it with virsh alone, on nodes of those
 * releases) or that its fix names, and what else must hold for it to strike. A version that is not known has no fault. */
#include "libmigrate/core/rules.h"

#include <string.h>

#define V(major, minor) ((major)*UINT64_C(1000000) + (minor)*UINT64_C(1000))

/* Versions from..before; before 0: all from there on; both 0: any. */
typedef struct Range {
  uint64_t from, before;
} Range;

typedef struct Fault {
  Range source_libvirt, target_libvirt, source_qemu, target_qemu;
  bool (*strikes)(const MigCheckInput *in);
  const char *seen;
} Fault;

static bool uses_post_copy(const MigCheckInput *in) {
  return rules_policy(in, MIG_POLICY_ALLOW_POST_COPY) != 0;
}

static bool has_threads(const MigCheckInput *in) {
  return in->domain->threads > 1;
}

static bool is_emulated(const MigCheckInput *in) {
  return in->domain->virt_type && strcmp(in->domain->virt_type, "qemu") == 0;
}

static const Fault faults[] = {
    /* libvirt's NEWS of 11.4.0. Seen: 11.3 (Debian 13) as the target of 9.0 and of 11.3; not 9.0 or 12.8 as the target of 11.3. */
    [RULE_FAULT_RESUME] =
        {.target_libvirt = {V(11, 2), V(11, 4)},
         .strikes = uses_post_copy,
         .seen = "The target's libvirt (11.2 or 11.3) crashes when an interrupted post-copy is resumed: "
                 "if the link broke then, the guest could not be recovered."},
    /* "extra features: ht". Seen: from QEMU 7.2 to 10.0 with libvirt 11.3; not to QEMU 11.1 with libvirt 12.8. libvirt
     * 11.10 has the fix by its NEWS. */
    [RULE_FAULT_THREADS] =
        {.source_qemu = {0, V(10, 0)},
         .target_qemu = {V(10, 0), 0},
         .target_libvirt = {0, V(11, 10)},
         .strikes = has_threads,
         .seen =
             "The guest's CPU has several threads in a core. The target's QEMU (10.0 or later) reports "
             "this as a feature that the guest did not have, and its libvirt (before 11.10) may refuse it."},
    /* Seen: QEMU 7.2 loses thousands of writes under plain virsh; 10.0 and 11.1 none. */
    [RULE_FAULT_EMULATOR] =
        {.source_qemu = {0, V(10, 0)},
         .strikes = is_emulated,
         .seen = "The guest is emulated (TCG), and QEMU before 10.0 may miss some of what an emulated guest "
                 "writes while its memory is copied."},
};

static bool is_in(uint64_t version, Range range) {
  if (range.from == 0 && range.before == 0)
    return true;
  return version > 0 && version >= range.from && (range.before == 0 || version < range.before);
}

bool rule_fault(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigHostFacts *source = in->source, *target = &in->target->host;
  const Fault *fault = &faults[argument];

  if (!is_in(source->libvirt_version, fault->source_libvirt) ||
      !is_in(target->libvirt_version, fault->target_libvirt) ||
      !is_in(source->hypervisor_version, fault->source_qemu) ||
      !is_in(target->hypervisor_version, fault->target_qemu) || !fault->strikes(in))
    return false;
  text_add(seen, "%s", fault->seen);
  return true;
}
