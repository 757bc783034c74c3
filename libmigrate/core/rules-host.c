/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks of what the target offers: CPU model, machine type, memory, and how many CPUs.
 *
 * Sources: libvirt 9.0 virHostCPUGetTscInfo() and its callers, virNumaNodesetIsAvailable(), virProcessSetAffinity();
 * QEMU's "State blocked by non-migratable CPU device (invtsc flag)". */
#include "libmigrate/core/rules.h"

#include <string.h>

/* Same as libvirt: NTP's tolerance. */
#define TSC_TOLERANCE_PPM 250

/* What QEMU needs on top of the guest's memory: page tables, device models, migration buffers. */
#define QEMU_MEMORY_SHARE 32
#define QEMU_MEMORY_BYTES (128 * MIG_MIB_BYTES)

static const char *or_no_reason(const char *text) {
  return text ? text : "no reason given";
}

/* --- CPU --- */

bool rule_cpu_invtsc(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigDomainFacts *domain = in->domain;
  bool passed =
      domain->cpu_mode == MIG_CPU_HOST_PASSTHROUGH && domain->cpu_not_migratable && in->source->cpu_invtsc;
  if ((!domain->cpu_invtsc && !passed) || domain->tsc_frequency_hz > 0)
    return false;
  text_add(seen, "The guest's CPU has invtsc (an invariant TSC) without a fixed frequency.");
  return true;
}

/* With check='none' the source may lack the same features; then the guest loses nothing. */
static bool lacks_the_same_here(const MigCheckInput *in) {
  const MigDomainFacts *domain = in->domain;
  return domain->cpu_unchecked && domain->cpu.match == MIG_CPU_MATCH_INCOMPATIBLE && domain->cpu.text &&
         in->target->cpu.text && strcmp(domain->cpu.text, in->target->cpu.text) == 0;
}

static bool is_copy_of_host(const MigDomainFacts *domain) {
  return domain->cpu_mode == MIG_CPU_HOST_PASSTHROUGH ||
         (domain->cpu_mode == MIG_CPU_MAXIMUM && domain->virt_type && strcmp(domain->virt_type, "kvm") == 0);
}

bool rule_cpu_incompatible(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigDomainFacts *domain = in->domain;
  if (in->target->cpu.match != MIG_CPU_MATCH_INCOMPATIBLE || is_copy_of_host(domain) ||
      lacks_the_same_here(in))
    return false;
  text_add(seen, "The target does not support the guest's CPU%s%s: %s.", domain->cpu_model ? ", " : "",
           domain->cpu_model ? domain->cpu_model : "", or_no_reason(in->target->cpu.text));
  return true;
}

bool rule_cpu_unchecked(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->target->cpu.match != MIG_CPU_MATCH_INCOMPATIBLE || !lacks_the_same_here(in))
    return false;
  text_add(seen, "Neither host supports all of the guest's CPU features: %s.", in->target->cpu.text);
  return true;
}

bool rule_cpu_unseen(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigDomainFacts *domain = in->domain;
  if (in->target->cpu.match != MIG_CPU_MATCH_UNSEEN || !domain->cpu_xml || is_copy_of_host(domain) ||
      in->target->virt_type != MIG_SIGHT_PRESENT)
    return false;
  text_add(seen, "The target's libvirt cannot tell whether the host supports the guest's CPU: %s.",
           or_no_reason(in->target->cpu.text));
  return true;
}

bool rule_cpu_other_host(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (!is_copy_of_host(in->domain) || in->target->host_cpu.match != MIG_CPU_MATCH_INCOMPATIBLE)
    return false;
  text_add(seen, "The guest uses the source host's CPU as it is, and the target has a different one: %s.",
           or_no_reason(in->target->host_cpu.text));
  return true;
}

bool rule_cpu_passthrough(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  MigCpuMatch match = in->target->host_cpu.match;
  if (!is_copy_of_host(in->domain) || match == MIG_CPU_MATCH_INCOMPATIBLE || match == MIG_CPU_MATCH_IDENTICAL)
    return false;
  text_add(seen, "The guest uses the source host's CPU as it is, and ");
  if (match == MIG_CPU_MATCH_SUPERSET)
    text_add(seen, "the target's CPU has additional features.");
  else
    text_add(seen, "the target's libvirt cannot tell how its own compares.");
  return true;
}

bool rule_tsc_frequency(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  uint64_t wanted = in->domain->tsc_frequency_hz, there = in->target->host.tsc_frequency_hz;
  uint64_t apart = wanted > there ? wanted - there : there - wanted;
  if (wanted == 0 || there == 0 || in->target->host.tsc_scaling ||
      apart <= there / 1000000 * TSC_TOLERANCE_PPM)
    return false;
  text_add(seen, "The guest's TSC runs at %.3f MHz, but the target's runs at %.3f MHz and cannot be scaled.",
           (double)wanted / 1e6, (double)there / 1e6);
  return true;
}

/* --- emulator and machine --- */

bool rule_emulator_missing(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigDomainFacts *domain = in->domain;
  if (in->target->emulator != MIG_SIGHT_ABSENT)
    return false;
  text_add(seen, "The target has no working emulator %s for %s.", domain->emulator ? domain->emulator : "",
           domain->arch ? domain->arch : "the guest's architecture");
  return true;
}

bool rule_virt_type(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->target->virt_type != MIG_SIGHT_ABSENT)
    return false;
  text_add(seen, "The target cannot run %s domains.", in->domain->virt_type ? in->domain->virt_type : "such");
  return true;
}

bool rule_machine_type(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigTargetFacts *target = in->target;
  if (target->machine != MIG_SIGHT_ABSENT)
    return false;
  text_add(seen, "The target's QEMU does not support machine type %s%s%s.",
           in->domain->machine ? in->domain->machine : "of the domain", target->machines ? "; " : "",
           target->machines ? target->machines : "");
  return true;
}

/* --- memory --- */

static uint64_t in_hugepages(const MigDomainFacts *domain) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < domain->n_hugepages; i++)
    bytes += domain->hugepages[i].bytes;
  return bytes;
}

static uint64_t minus(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/* In normal pages: the most that the guest may use, and what its balloon leaves it now. */
static uint64_t most_memory(const MigDomainFacts *domain) {
  return minus(domain->memory_bytes, in_hugepages(domain));
}

static uint64_t memory_now(const MigDomainFacts *domain) {
  uint64_t most = most_memory(domain);
  uint64_t now = domain->current_memory_bytes;
  return now > 0 && now < most ? now : most;
}

bool rule_target_too_small(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  uint64_t needed = memory_now(in->domain) + in_hugepages(in->domain);
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];
  if (in->target->host.memory_bytes == 0 || needed <= in->target->host.memory_bytes)
    return false;
  text_add(seen, "The guest has %s of memory, more than the whole target (%s).", text_bytes(needed, a),
           text_bytes(in->target->host.memory_bytes, b));
  return true;
}

bool rule_target_memory(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  uint64_t needed = memory_now(in->domain);
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];
  if (in->target->free_bytes == UINT64_MAX || needed <= in->target->free_bytes)
    return false;
  text_add(seen, "The guest has %s of memory, but the target has only %s free.", text_bytes(needed, a),
           text_bytes(in->target->free_bytes, b));
  return true;
}

bool rule_memory_ballooned(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  uint64_t most = most_memory(in->domain), now = memory_now(in->domain);
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE];
  if (in->target->free_bytes == UINT64_MAX || now > in->target->free_bytes || most <= in->target->free_bytes)
    return false;
  text_add(seen, "The guest uses %s of memory and may grow to %s, but the target has only %s free.",
           text_bytes(now, a), text_bytes(most, b), text_bytes(in->target->free_bytes, c));
  return true;
}

bool rule_memory_tight(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  uint64_t most = most_memory(in->domain), free_bytes = in->target->free_bytes;
  char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE];
  if (free_bytes == UINT64_MAX || most > free_bytes || most == 0 ||
      most + most / QEMU_MEMORY_SHARE + QEMU_MEMORY_BYTES <= free_bytes)
    return false;
  text_add(seen, "The guest has %s of memory, and the target has just %s free.", text_bytes(most, a),
           text_bytes(free_bytes, b));
  return true;
}

/* Huge pages of one size at the target. For the default size, whose value at the target is not known, the size with
 * the most free. */
static MigPages pages_at_target(const MigHostFacts *host, uint64_t page_bytes) {
  MigPages found = {.page_bytes = page_bytes};
  uint64_t smallest = UINT64_MAX;
  for (size_t i = 0; i < host->n_pages; i++)
    if (host->pages[i].page_bytes < smallest)
      smallest = host->pages[i].page_bytes;
  for (size_t i = 0; i < host->n_pages; i++) {
    const MigPages *pages = &host->pages[i];
    uint64_t left = pages->free * pages->page_bytes, most = found.free * found.page_bytes;
    bool better =
        left > most || (left == most && pages->total * pages->page_bytes > found.total * found.page_bytes);
    if (page_bytes > 0 ? pages->page_bytes == page_bytes : pages->page_bytes > smallest && better)
      found = *pages;
  }
  return found;
}

/* Once for each size. */
static bool list_hugepages(const MigCheckInput *in, const char *lead, bool taken, Text *seen) {
  const MigDomainFacts *domain = in->domain;
  const MigHostFacts *host = &in->target->host;
  for (size_t i = 0; i < domain->n_hugepages && host->n_pages > 0; i++) {
    MigPages pages = pages_at_target(host, domain->hugepages[i].page_bytes);
    uint64_t needed = 0, total = pages.total * pages.page_bytes, left = pages.free * pages.page_bytes;
    char a[TEXT_NUMBER_SIZE], b[TEXT_NUMBER_SIZE], c[TEXT_NUMBER_SIZE];
    bool first = true;
    for (size_t other = 0; other < domain->n_hugepages; other++) {
      if (domain->hugepages[other].page_bytes != domain->hugepages[i].page_bytes)
        continue;
      first = first && other >= i;
      needed += domain->hugepages[other].bytes;
    }
    if (!first || (taken ? needed > total || needed <= left : needed <= total))
      continue;
    text_lead(seen, lead);
    text_item(seen, "%s needed in pages of %s, %s %s", text_bytes(needed, a),
              pages.page_bytes > 0 ? text_bytes(pages.page_bytes, b) : "the default size",
              text_bytes(taken ? left : total, c), taken ? "free" : "allocated");
  }
  return text_end(seen);
}

bool rule_hugepages_missing(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_hugepages(in, lead, false, seen);
}

bool rule_hugepages_taken(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_hugepages(in, lead, true, seen);
}

/* --- CPU and NUMA node numbers --- */

bool rule_vcpus_max(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  if (in->target->vcpus_max == 0 || in->domain->vcpus <= in->target->vcpus_max)
    return false;
  text_add(seen, "The guest may have %u vCPUs; the target's QEMU supports %u with machine type %s.",
           in->domain->vcpus, in->target->vcpus_max,
           in->domain->machine ? in->domain->machine : "of the domain");
  return true;
}

bool rule_vcpus_overcommitted(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  unsigned cpus = mig_set_count(&in->target->host.cpus);
  if (cpus == 0 || in->domain->vcpus <= cpus)
    return false;
  text_add(seen, "The guest has %u vCPUs, more than the target has CPUs (%u).", in->domain->vcpus, cpus);
  return true;
}

typedef enum Pinned { PINNED_NOWHERE, PINNED_FEWER, PINNED_ALL } Pinned;

static Pinned how_pinned(const MigPin *pin, const MigSet *cpus) {
  unsigned common = mig_set_count_common(&pin->cpus, cpus);
  return common == 0 ? PINNED_NOWHERE : common < mig_set_count(&pin->cpus) ? PINNED_FEWER : PINNED_ALL;
}

static bool list_pins(const MigCheckInput *in, const char *lead, Pinned how, Text *seen) {
  const MigSet *cpus = &in->target->host.cpus;
  for (size_t i = 0; i < in->domain->n_pins && mig_set_count(cpus) > 0; i++) {
    if (how_pinned(&in->domain->pins[i], cpus) != how)
      continue;
    text_lead(seen, lead);
    text_item(seen, "%s", in->domain->pins[i].who);
  }
  return text_end(seen);
}

bool rule_pinned_cpus(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_pins(in, lead, PINNED_NOWHERE, seen);
}

bool rule_pinned_cpus_fewer(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  return list_pins(in, lead, PINNED_FEWER, seen);
}

bool rule_pinned(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  for (size_t i = 0; i < in->domain->n_pins; i++) {
    text_lead(seen, lead);
    text_item(seen, "%s", in->domain->pins[i].who);
  }
  return text_end(seen);
}

bool rule_numa_nodes(const MigCheckInput *in, unsigned argument, const char *lead, Text *seen) {
  const MigSet *wanted = &in->domain->numa_nodes, *there = &in->target->host.numa_nodes;
  if (mig_set_count(there) == 0 || mig_set_count(wanted) == mig_set_count_common(wanted, there))
    return false;
  for (unsigned node = 0; node < MIG_SET_MAX; node++) {
    if (!mig_set_has(wanted, node) || mig_set_has(there, node))
      continue;
    text_lead(seen, lead);
    text_item(seen, "%u", node);
  }
  return text_end(seen);
}
