/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks of the domain itself, of the target as a whole, and of what the target must have by name.
 *
 * Sources for what cannot be migrated: libvirt 9.0 qemuMigrationSrcIsAllowed() and the migration blockers of QEMU's
 * devices. */
#include "libmigrate/core/rules.h"

#include <string.h>

/* Since 8.1 QEMU asks a device's driver; earlier releases migrate none without experimental switches. */
#define QEMU_MOVES_VFIO 8001000

uint64_t rules_qemu_version(const MigCheckInput *in) {
  uint64_t here = in->source->hypervisor_version;
  uint64_t there = in->target ? in->target->host.hypervisor_version : here;
  return here < there ? here : there;
}

uint64_t rules_libvirt_version(const MigCheckInput *in) {
  uint64_t here = in->source->libvirt_version;
  uint64_t there = in->target ? in->target->host.libvirt_version : here;
  return here < there ? here : there;
}

bool rule_target_unreachable(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->target || !in->target_error || !in->target_away)
    return false;
  text_add(seen, "The target %s does not answer: %s.", in->target_uri, in->target_error);
  return true;
}

bool rule_target_refuses(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->target || !in->target_error || in->target_away)
    return false;
  text_add(seen, "Cannot connect to the target %s: %s.", in->target_uri, in->target_error);
  return true;
}

bool rule_same_host(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!in->source->uuid[0] || strcmp(in->source->uuid, in->target->host.uuid) != 0)
    return false;
  text_add(seen, "The target %s is the source host itself (host UUID %s).", in->target_uri, in->source->uuid);
  return true;
}

bool rule_node_cordoned(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!in->cordon)
    return false;
  text_add(seen, "The source node is cordoned and takes no new work%s%s.", in->cordon[0] ? ": " : "",
           in->cordon);
  return true;
}

bool rule_domain_busy(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!in->busy_job)
    return false;
  text_add(seen, "The domain already has a migration job, running or pending: job %s.", in->busy_job);
  return true;
}

bool rule_domain_state(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->domain->state == MIG_END_RUNNING || in->domain->state == MIG_END_PAUSED)
    return false;
  text_add(seen, "The domain is %s.", mig_end_state_name(in->domain->state));
  return true;
}

bool rule_domain_exists(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  MigEndState state = in->target->domain_state;
  if (state == MIG_END_ABSENT || state == MIG_END_INACTIVE)
    return false;
  /* SAME_HOST: of course it has the domain. */
  if (in->source->uuid[0] && strcmp(in->source->uuid, in->target->host.uuid) == 0)
    return false;
  text_add(seen, "A domain with the same UUID is already %s at the target.", mig_end_state_name(state));
  return true;
}

bool rule_name_taken(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!in->target->other_uuid)
    return false;
  text_add(seen, "At the target, another domain (%s) has the name %s.", in->target->other_uuid,
           in->domain->name);
  return true;
}

bool rule_io_error(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!in->domain->io_error)
    return false;
  text_add(seen, "The guest is paused because of a disk I/O error.");
  return true;
}

bool rule_domain_job(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!in->domain->job)
    return false;
  text_add(seen, "Another libvirt job is running on the domain: %s.", in->domain->job);
  return true;
}

bool rule_block_job(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_disks; i++) {
    if (!in->domain->disks[i].job)
      continue;
    text_lead(seen, lead);
    text_item(seen, "%s", in->domain->disks[i].target);
  }
  return text_end(seen);
}

bool rule_snapshots(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->domain->snapshots == 0)
    return false;
  text_add(seen, "The domain has %u snapshot%s, and libvirt does not migrate domains with snapshots.",
           in->domain->snapshots, in->domain->snapshots == 1 ? "" : "s");
  return true;
}

bool rule_domain_paused(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->domain->state != MIG_END_PAUSED || in->domain->io_error)
    return false;
  text_add(seen, "The guest is paused.");
  return true;
}

bool rule_defined_at_target(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->target->domain_state != MIG_END_INACTIVE)
    return false;
  text_add(seen, "The domain is already defined at the target and shut off.");
  return true;
}

/* 7.2.3 and 7.2.22 count as the same release. */
static bool is_older(uint64_t there, uint64_t here) {
  return there > 0 && here > 0 && there / 1000 < here / 1000;
}

static bool older(const char *what, uint64_t there, uint64_t here, Text *seen) {
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];
  if (!is_older(there, here))
    return false;
  text_add(seen, "The target's %s is %s, older than %s at the source.", what, text_version(there, a),
           text_version(here, b));
  return true;
}

bool rule_qemu_older(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return older("QEMU", in->target->host.hypervisor_version, in->source->hypervisor_version, seen);
}

bool rule_libvirt_older(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return older("libvirt", in->target->host.libvirt_version, in->source->libvirt_version, seen);
}

bool rule_tls_certificates(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (rules_policy(in, MIG_POLICY_TLS) != MIG_TLS_REQUIRE || in->domain->certificates != MIG_SIGHT_ABSENT)
    return false;
  text_add(seen, "TLS is required, but the source has no certificates for it: there is no ca-cert.pem in "
                 "libvirt's TLS directory for QEMU.");
  return true;
}

bool rule_tls_unseen(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (rules_policy(in, MIG_POLICY_TLS) != MIG_TLS_REQUIRE)
    return false;
  text_add(seen, "Cannot tell whether %s the certificates for tls=require.",
           in->domain->certificates == MIG_SIGHT_UNSEEN ? "both hosts have" : "the target has");
  return true;
}

bool rule_tls_control(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (rules_policy(in, MIG_POLICY_TLS) != MIG_TLS_REQUIRE || !in->target_uri ||
      !strstr(in->target_uri, "+tcp://"))
    return false;
  text_add(seen, "TLS is required, but the hosts' libvirtds talk to each other unencrypted (%s).",
           in->target_uri);
  return true;
}

/* --- lists --- */

/* `kinds`: a bit for each. */
static bool list_traits(const MigCheckInput *in, unsigned kinds, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_traits; i++) {
    const MigTrait *trait = &in->domain->traits[i];
    if (!(kinds & 1u << trait->kind))
      continue;
    text_lead(seen, lead);
    text_item(seen, "%s", trait->text);
  }
  return text_end(seen);
}

bool rule_trait(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_traits(in, 1u << argument, lead, seen);
}

bool rule_hostdev(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return rules_qemu_version(in) < QEMU_MOVES_VFIO && list_traits(in, 1u << argument, lead, seen);
}

bool rule_hostdev_vfio(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const unsigned kinds = 1u << MIG_TRAIT_HOSTDEV_PCI | 1u << MIG_TRAIT_HOSTDEV_MDEV;
  return rules_qemu_version(in) >= QEMU_MOVES_VFIO && list_traits(in, kinds, lead, seen);
}

bool rule_need(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  MigNeedKind kind = (MigNeedKind)(argument >> 4);
  MigSight sight = (MigSight)(argument & 15);
  for (size_t i = 0; i < in->domain->n_needs && i < in->target->n_needs; i++) {
    const MigNeed *need = &in->domain->needs[i];
    if (need->kind != kind || in->target->needs[i] != sight)
      continue;
    text_lead(seen, lead);
    if (kind == MIG_NEED_DEVICE)
      text_item(seen, "%s %s", need->user, need->name);
    else if (need->user)
      text_item(seen, "%s (%s)", need->name, need->user);
    else
      text_item(seen, "%s", need->name);
  }
  return text_end(seen);
}
