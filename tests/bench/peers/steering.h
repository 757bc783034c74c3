/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the peers' strategies have in common: reading a policy, and saying what to do. */
#pragma once

#include "tests/sim/strategy.h"

/* A running migration whose numbers could be read, and which can still be steered. */
static inline bool steerable(const MigSample *sample) {
  return sample->valid && sample->active && !sample->post_copy;
}

static inline uint64_t remaining_bytes(const MigSample *sample) {
  return sample->memory_remaining_bytes + sample->disk_remaining_bytes;
}

static inline uint64_t elapsed_ms(uint64_t start_ms, const MigSample *sample) {
  return sample->now_ms > start_ms ? sample->now_ms - start_ms : 0;
}

/* A peer keeps its own number unless the policy of the race names one. */
uint64_t policy_or(const MigPolicy *policy, MigPolicyKey key, uint64_t own);

void act_none(MigAction *ret_action);
void act_abort(MigAction *ret_action, MigCause cause, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void act_downtime(MigAction *ret_action, uint64_t downtime_ms, const char *why);
void act_post_copy(MigAction *ret_action, const char *why);
void act_pause(MigAction *ret_action, const char *why);

extern const Strategy kubevirt_strategy;
extern const Strategy kubevirt_stall_strategy;
extern const Strategy nova_abort_strategy;
extern const Strategy nova_force_strategy;
extern const Strategy ovirt_minimal_strategy;
extern const Strategy ovirt_post_copy_strategy;
extern const Strategy ovirt_suspend_strategy;
extern const Strategy proxmox_strategy;
extern const Strategy virsh_plain_strategy;
extern const Strategy virsh_auto_converge_strategy;
extern const Strategy virsh_timeout_suspend_strategy;
extern const Strategy virsh_timeout_post_copy_strategy;
extern const Strategy virsh_post_copy_after_pre_copy_strategy;
