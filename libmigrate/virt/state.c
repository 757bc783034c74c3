/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Translates libvirt's domain states and lifecycle events to the end states that a verdict is based on. */
#include "libmigrate/virt/libvirt.h"

/* VIR_DOMAIN_PAUSED_API_ERROR came with libvirt 9.2, and a libvirtd may be newer than our library. libvirt 9.0 leaves
 * PAUSED_MIGRATION instead. */
#define PAUSED_API_ERROR 14

/* For each state, rows with a reason come before the row with MIG_ANY. */
static const MigStateRow states[] = {
    {VIR_DOMAIN_NOSTATE, MIG_ANY, MIG_END_UNKNOWN},

    {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY, MIG_END_RUNNING_POSTCOPY},
    {VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_POSTCOPY_FAILED, MIG_END_RUNNING_POSTCOPY_FAILED},
    {VIR_DOMAIN_RUNNING, MIG_ANY, MIG_END_RUNNING},
    {VIR_DOMAIN_BLOCKED, MIG_ANY, MIG_END_RUNNING},

    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_MIGRATION, MIG_END_PAUSED_MIGRATION},
    /* The first moments of a target in Prepare. A domain that its owner starts passes through it too, on its way to RUNNING.
     * PAUSED would be wrong: there is no guest yet. */
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_STARTING_UP, MIG_END_PAUSED_MIGRATION},
    /* A migration (or a save) failed and libvirt could not resume the guest, so it is still as that left it. */
    {VIR_DOMAIN_PAUSED, PAUSED_API_ERROR, MIG_END_PAUSED_MIGRATION},
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY, MIG_END_PAUSED_POSTCOPY},
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_POSTCOPY_FAILED, MIG_END_PAUSED_POSTCOPY_FAILED},
    {VIR_DOMAIN_PAUSED, VIR_DOMAIN_PAUSED_CRASHED, MIG_END_CRASHED},
    {VIR_DOMAIN_PAUSED, MIG_ANY, MIG_END_PAUSED},
    {VIR_DOMAIN_PMSUSPENDED, MIG_ANY, MIG_END_PAUSED},

    /* Shutting down, but its QEMU still holds the disks. */
    {VIR_DOMAIN_SHUTDOWN, MIG_ANY, MIG_END_RUNNING},

    {VIR_DOMAIN_SHUTOFF, MIG_ANY, MIG_END_INACTIVE},
    {VIR_DOMAIN_CRASHED, MIG_ANY, MIG_END_CRASHED},
};

const MigStateRow *mig_state_rows(size_t *ret_n) {
  *ret_n = G_N_ELEMENTS(states);
  return states;
}

MigEndState mig_state_from_libvirt(int state, int reason) {
  for (size_t i = 0; i < G_N_ELEMENTS(states); i++)
    if (states[i].state == state && (states[i].reason == MIG_ANY || states[i].reason == reason))
      return states[i].end;

  return MIG_END_UNKNOWN;
}

#define EVENT(event, detail, end, name)                                                                      \
  { VIR_DOMAIN_EVENT_##event, VIR_DOMAIN_EVENT_##event##_##detail, MIG_END_##end, name }

static const MigLifecycleRow events[] = {
    EVENT(UNDEFINED, REMOVED, ABSENT, "undefined: removed"),

    EVENT(STARTED, BOOTED, RUNNING, "started: booted"),
    /* At the target, when its QEMU begins to listen. The guest has not arrived yet. */
    EVENT(STARTED, MIGRATED, PAUSED_MIGRATION, "started: migrated"),
    EVENT(STARTED, RESTORED, RUNNING, "started: restored"),
    EVENT(STARTED, FROM_SNAPSHOT, RUNNING, "started: from snapshot"),
    EVENT(STARTED, WAKEUP, RUNNING, "started: woken up"),
    {VIR_DOMAIN_EVENT_STARTED, MIG_ANY, MIG_END_RUNNING, "started"},

    EVENT(SUSPENDED, PAUSED, PAUSED, "suspended: paused"),
    EVENT(SUSPENDED, MIGRATED, PAUSED_MIGRATION, "suspended: migrated"),
    EVENT(SUSPENDED, IOERROR, PAUSED, "suspended: I/O error"),
    EVENT(SUSPENDED, WATCHDOG, PAUSED, "suspended: watchdog"),
    EVENT(SUSPENDED, RESTORED, PAUSED, "suspended: restored"),
    EVENT(SUSPENDED, FROM_SNAPSHOT, PAUSED, "suspended: from snapshot"),
    EVENT(SUSPENDED, API_ERROR, PAUSED_MIGRATION, "suspended: API error"),
    EVENT(SUSPENDED, POSTCOPY, PAUSED_POSTCOPY, "suspended: post-copy"),
    EVENT(SUSPENDED, POSTCOPY_FAILED, PAUSED_POSTCOPY_FAILED, "suspended: post-copy failed"),
    {VIR_DOMAIN_EVENT_SUSPENDED, MIG_ANY, MIG_END_PAUSED, "suspended"},

    EVENT(RESUMED, UNPAUSED, RUNNING, "resumed: unpaused"),
    EVENT(RESUMED, MIGRATED, RUNNING, "resumed: migrated"),
    EVENT(RESUMED, FROM_SNAPSHOT, RUNNING, "resumed: from snapshot"),
    EVENT(RESUMED, POSTCOPY, RUNNING_POSTCOPY, "resumed: post-copy"),
    EVENT(RESUMED, POSTCOPY_FAILED, RUNNING_POSTCOPY_FAILED, "resumed: post-copy failed"),
    {VIR_DOMAIN_EVENT_RESUMED, MIG_ANY, MIG_END_RUNNING, "resumed"},

    EVENT(STOPPED, SHUTDOWN, INACTIVE, "stopped: shutdown"),
    EVENT(STOPPED, DESTROYED, INACTIVE, "stopped: destroyed"),
    EVENT(STOPPED, CRASHED, INACTIVE, "stopped: crashed"),
    EVENT(STOPPED, MIGRATED, INACTIVE, "stopped: migrated"),
    EVENT(STOPPED, SAVED, INACTIVE, "stopped: saved"),
    EVENT(STOPPED, FAILED, INACTIVE, "stopped: failed"),
    EVENT(STOPPED, FROM_SNAPSHOT, INACTIVE, "stopped: from snapshot"),
    {VIR_DOMAIN_EVENT_STOPPED, MIG_ANY, MIG_END_INACTIVE, "stopped"},

    /* QEMU sends it as well when a copy that a migration stopped is destroyed: only a guest that shut down itself is known to
     * have run. */
    EVENT(SHUTDOWN, FINISHED, UNKNOWN, "shutdown: finished"),
    EVENT(SHUTDOWN, GUEST, RUNNING, "shutdown: by the guest"),
    EVENT(SHUTDOWN, HOST, UNKNOWN, "shutdown: by the host"),
    {VIR_DOMAIN_EVENT_SHUTDOWN, MIG_ANY, MIG_END_UNKNOWN, "shutdown"},

    {VIR_DOMAIN_EVENT_PMSUSPENDED, MIG_ANY, MIG_END_PAUSED, "suspended: by power management"},
    {VIR_DOMAIN_EVENT_CRASHED, MIG_ANY, MIG_END_CRASHED, "crashed"},
};

const MigLifecycleRow *mig_lifecycle_rows(size_t *ret_n) {
  *ret_n = G_N_ELEMENTS(events);
  return events;
}

const MigLifecycleRow *mig_lifecycle_find(int event, int detail) {
  for (size_t i = 0; i < G_N_ELEMENTS(events); i++)
    if (events[i].event == event && (events[i].detail == MIG_ANY || events[i].detail == detail))
      return &events[i];

  return NULL;
}
