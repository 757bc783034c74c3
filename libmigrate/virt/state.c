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

static const MigLifecycleRow events[] = {
    {VIR_DOMAIN_EVENT_UNDEFINED, VIR_DOMAIN_EVENT_UNDEFINED_REMOVED, MIG_END_ABSENT, "undefined: removed"},

    {VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_BOOTED, MIG_END_RUNNING, "started: booted"},
    /* At the target, when its QEMU begins to listen. The guest has not arrived yet. */
    {VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_MIGRATED, MIG_END_PAUSED_MIGRATION,
     "started: migrated"},
    {VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_RESTORED, MIG_END_RUNNING, "started: restored"},
    {VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_FROM_SNAPSHOT, MIG_END_RUNNING,
     "started: from snapshot"},
    {VIR_DOMAIN_EVENT_STARTED, VIR_DOMAIN_EVENT_STARTED_WAKEUP, MIG_END_RUNNING, "started: woken up"},
    {VIR_DOMAIN_EVENT_STARTED, MIG_ANY, MIG_END_RUNNING, "started"},

    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED, MIG_END_PAUSED, "suspended: paused"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_MIGRATED, MIG_END_PAUSED_MIGRATION,
     "suspended: migrated"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_IOERROR, MIG_END_PAUSED, "suspended: I/O error"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_WATCHDOG, MIG_END_PAUSED, "suspended: watchdog"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_RESTORED, MIG_END_PAUSED, "suspended: restored"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_FROM_SNAPSHOT, MIG_END_PAUSED,
     "suspended: from snapshot"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_API_ERROR, MIG_END_PAUSED_MIGRATION,
     "suspended: API error"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY, MIG_END_PAUSED_POSTCOPY,
     "suspended: post-copy"},
    {VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_POSTCOPY_FAILED, MIG_END_PAUSED_POSTCOPY_FAILED,
     "suspended: post-copy failed"},
    {VIR_DOMAIN_EVENT_SUSPENDED, MIG_ANY, MIG_END_PAUSED, "suspended"},

    {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_UNPAUSED, MIG_END_RUNNING, "resumed: unpaused"},
    {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_MIGRATED, MIG_END_RUNNING, "resumed: migrated"},
    {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_FROM_SNAPSHOT, MIG_END_RUNNING,
     "resumed: from snapshot"},
    {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_POSTCOPY, MIG_END_RUNNING_POSTCOPY,
     "resumed: post-copy"},
    {VIR_DOMAIN_EVENT_RESUMED, VIR_DOMAIN_EVENT_RESUMED_POSTCOPY_FAILED, MIG_END_RUNNING_POSTCOPY_FAILED,
     "resumed: post-copy failed"},
    {VIR_DOMAIN_EVENT_RESUMED, MIG_ANY, MIG_END_RUNNING, "resumed"},

    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_SHUTDOWN, MIG_END_INACTIVE, "stopped: shutdown"},
    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_DESTROYED, MIG_END_INACTIVE, "stopped: destroyed"},
    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_CRASHED, MIG_END_INACTIVE, "stopped: crashed"},
    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_MIGRATED, MIG_END_INACTIVE, "stopped: migrated"},
    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_SAVED, MIG_END_INACTIVE, "stopped: saved"},
    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_FAILED, MIG_END_INACTIVE, "stopped: failed"},
    {VIR_DOMAIN_EVENT_STOPPED, VIR_DOMAIN_EVENT_STOPPED_FROM_SNAPSHOT, MIG_END_INACTIVE,
     "stopped: from snapshot"},
    {VIR_DOMAIN_EVENT_STOPPED, MIG_ANY, MIG_END_INACTIVE, "stopped"},

    /* QEMU sends it as well when a copy that a migration stopped is destroyed: only a guest that shut down itself is known to
     * have run. */
    {VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_FINISHED, MIG_END_UNKNOWN, "shutdown: finished"},
    {VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_GUEST, MIG_END_RUNNING, "shutdown: by the guest"},
    {VIR_DOMAIN_EVENT_SHUTDOWN, VIR_DOMAIN_EVENT_SHUTDOWN_HOST, MIG_END_UNKNOWN, "shutdown: by the host"},
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
