/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* virsh migrate: what its options can do. */
#include "tests/bench/peers/steering.h"

/* Source: libvirt, tools/virsh-domain.c (cmdMigrate, the timeout's and the iteration event's callbacks) and
 * docs/manpages/virsh.rst.
 *
 * Defaults: none of these options; QEMU's downtime limit of 300 ms, and its auto-converge (20 %, then by 10 to
 * 99). --timeout acts once, at that second after the call; 10 s here, of which the race tells.
 * --postcopy-after-precopy acts on the event of the second iteration, which has the first pass behind it.
 *
 * Switches: whoever types the command has the policy in mind; so each variant takes part only where what it does is
 * permitted. */

enum {
  TIMEOUT_MS = 10000,
  POLL_MS = 100,
  EVENT_POLL_MS = 50, /* stands in for the event */
  SECOND_ITERATION = 2,
};

typedef struct Virsh {
  uint64_t start_ms;
  bool acted;
} Virsh;

static void virsh_start(Virsh *virsh, uint64_t now_ms) {
  *virsh = (Virsh){.start_ms = now_ms};
}

static void plain_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                        StrategyStart *ret_start) {
  virsh_start(state, now_ms);
  *ret_start = (StrategyStart){0};
}

static void auto_converge_start(void *state, const MigPolicy *policy, const StrategyGuest *guest,
                                uint64_t now_ms, StrategyStart *ret_start) {
  virsh_start(state, now_ms);
  *ret_start = (StrategyStart){.auto_converge = true};
}

static void post_copy_start(void *state, const MigPolicy *policy, const StrategyGuest *guest, uint64_t now_ms,
                            StrategyStart *ret_start) {
  virsh_start(state, now_ms);
  *ret_start = (StrategyStart){.post_copy = true};
}

static void plain_step(void *state, const MigSample *sample, MigAction *ret_action) {
  act_none(ret_action);
}

static bool times_out(Virsh *virsh, const MigSample *sample) {
  if (virsh->acted || !steerable(sample) || elapsed_ms(virsh->start_ms, sample) < TIMEOUT_MS)
    return false;
  virsh->acted = true;
  return true;
}

static void timeout_suspend_step(void *state, const MigSample *sample, MigAction *ret_action) {
  act_none(ret_action);
  if (times_out(state, sample))
    act_pause(ret_action, "the timeout has passed");
}

static void timeout_post_copy_step(void *state, const MigSample *sample, MigAction *ret_action) {
  act_none(ret_action);
  if (times_out(state, sample))
    act_post_copy(ret_action, "the timeout has passed");
}

static void after_pre_copy_step(void *state, const MigSample *sample, MigAction *ret_action) {
  Virsh *virsh = state;
  act_none(ret_action);
  if (virsh->acted || !steerable(sample) || sample->iteration < SECOND_ITERATION)
    return;
  virsh->acted = true;
  act_post_copy(ret_action, "the first pass is done");
}

const Strategy virsh_plain_strategy = {
    .name = "virsh-plain",
    .source = "virsh migrate --live",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Virsh),
    .start = plain_start,
    .step = plain_step,
};

const Strategy virsh_auto_converge_strategy = {
    .name = "virsh-auto-converge",
    .source = "virsh migrate --live --auto-converge",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Virsh),
    .start = auto_converge_start,
    .step = plain_step,
};

const Strategy virsh_timeout_suspend_strategy = {
    .name = "virsh-timeout-suspend",
    .source = "virsh migrate --live --timeout 10 --timeout-suspend",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Virsh),
    .start = plain_start,
    .step = timeout_suspend_step,
};

const Strategy virsh_timeout_post_copy_strategy = {
    .name = "virsh-timeout-postcopy",
    .source = "virsh migrate --live --postcopy --timeout 10 --timeout-postcopy",
    .poll_ms = POLL_MS,
    .state_size = sizeof(Virsh),
    .start = post_copy_start,
    .step = timeout_post_copy_step,
};

const Strategy virsh_post_copy_after_pre_copy_strategy = {
    .name = "virsh-postcopy-after-precopy",
    .source = "virsh migrate --live --postcopy --postcopy-after-precopy",
    .poll_ms = EVENT_POLL_MS,
    .state_size = sizeof(Virsh),
    .start = post_copy_start,
    .step = after_pre_copy_step,
};
