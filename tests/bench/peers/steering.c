/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the peers' strategies have in common: reading a policy, and saying what to do. */
#include "tests/bench/peers/steering.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

uint64_t policy_or(const MigPolicy *policy, MigPolicyKey key, uint64_t own) {
  return policy->set & (UINT32_C(1) << key) ? mig_policy_get(policy, key) : own;
}

void act_none(MigAction *ret_action) {
  *ret_action = (MigAction){.kind = MIG_ACTION_NONE};
}

void act_abort(MigAction *ret_action, MigCause cause, const char *format, ...) {
  va_list arguments;
  *ret_action = (MigAction){.kind = MIG_ACTION_ABORT, .cause = cause};
  va_start(arguments, format);
  vsnprintf(ret_action->message, sizeof(ret_action->message), format, arguments);
  va_end(arguments);
}

void act_downtime(MigAction *ret_action, uint64_t downtime_ms, const char *why) {
  *ret_action = (MigAction){.kind = MIG_ACTION_SET_DOWNTIME, .downtime_ms = downtime_ms};
  snprintf(ret_action->message, sizeof(ret_action->message), "downtime %" PRIu64 " ms: %s", downtime_ms, why);
}

void act_post_copy(MigAction *ret_action, const char *why) {
  *ret_action = (MigAction){.kind = MIG_ACTION_START_POST_COPY};
  snprintf(ret_action->message, sizeof(ret_action->message), "%s", why);
}

void act_pause(MigAction *ret_action, const char *why) {
  *ret_action = (MigAction){.kind = MIG_ACTION_PAUSE};
  snprintf(ret_action->message, sizeof(ret_action->message), "%s", why);
}
