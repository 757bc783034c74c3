# SPDX-License-Identifier: LGPL-2.1-or-later
"""The calls that changed the guest, from the libvirtds' own logs: libvirtd logs each call of its interface.

The logs do not say who called. What the owner and the operator of a case did is known; everything else is the agents' doing.
"""
import calendar
import collections
import os
import re
import time

# libvirt call: the virsh command that makes it. Only calls that change something count.
VERBS = {
    "virDomainSuspend": "suspend",
    "virDomainResume": "resume",
    "virDomainAbortJob": "domjobabort",
    "virDomainAbortJobFlags": "domjobabort",
    "virDomainUndefine": "undefine",
    "virDomainUndefineFlags": "undefine",
    "virDomainDestroy": "destroy",
    "virDomainDestroyFlags": "destroy",
    "virDomainShutdown": "shutdown",
    "virDomainShutdownFlags": "shutdown",
    "virDomainReboot": "reboot",
    "virDomainReset": "reset",
    "virDomainCreate": "start",
    "virDomainCreateWithFlags": "start",
    "virDomainMigrateSetMaxDowntime": "migrate-setmaxdowntime",
    "virDomainMigrateSetMaxSpeed": "migrate-setspeed",
    "virDomainMigrateStartPostCopy": "migrate-postcopy",
    "virDomainManagedSave": "managedsave",
    "virDomainManagedSaveRemove": "managedsave-remove",
    "virDomainSave": "save",
    "virDomainSaveFlags": "save",
    "virDomainSaveParams": "save",
}
# An agent never makes these calls, whatever it sees.
NEVER = {"destroy", "shutdown", "reboot", "reset", "start", "managedsave", "managedsave-remove", "save"}

# Calls that an agent makes for its own migration, and nobody else's.
STEERING = {"domjobabort", "suspend", "migrate-setmaxdowntime", "migrate-setspeed", "migrate-postcopy"}

LOGGED = "1:libvirt.domain"
LINE = re.compile(r"^(\S+ \S+)\.(\d{3})\+0000: \d+: debug : (\w+):\d+ : .*?VM: name=([^,)]+)")

Call = collections.namedtuple("Call", "time node verb")


def log_path(directory, node):
    return os.path.join(directory, f"node-{node}", "log-libvirt", "libvirtd.log")


def size(directory, node):
    try:
        return os.stat(log_path(directory, node)).st_size
    except FileNotFoundError:
        return 0


def read_calls(directory, node, offset, guest):
    """The calls about the guest that its libvirtd logged since the log had that size."""
    calls = []
    with open(log_path(directory, node), encoding="utf-8", errors="replace") as file:
        file.seek(offset)
        for line in file:
            found = LINE.match(line)
            if found and found[3] in VERBS and found[4] == guest:
                when = calendar.timegm(time.strptime(found[1], "%Y-%m-%d %H:%M:%S")) + int(found[2]) / 1000
                calls.append(Call(when, node, VERBS[found[3]]))
    return calls


def without(calls, acts):
    """The calls that belong to none of the acts: each act made one."""
    left = list(calls)
    for act in acts:
        mine = [c for c in left if (c.node, c.verb) == (act.node, act.verb) and act.began - 0.05 <= c.time <= act.ended + 0.05]
        if mine:
            left.remove(mine[0])
    return left
