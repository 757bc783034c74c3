# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the libvirtds were asked to do to the guest, by their own logs: libvirtd notes each call of its interface.

Who called is not in there. What the owner and the operator of a case did is known; all else is the agents' doing.
"""
import calendar
import collections
import os
import re
import time

# call of libvirt: the command of virsh that makes it. Only what changes something is looked at.
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
# An agent never does these, whatever it sees.
NEVER = {"destroy", "shutdown", "reboot", "reset", "start", "managedsave", "managedsave-remove", "save"}

# What an agent does to a migration: its own, and nobody else's.
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
    """Calls about the guest that its libvirtd took since the log had that size."""
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
    """The calls that none of the acts was: each was one."""
    left = list(calls)
    for act in acts:
        mine = [c for c in left if (c.node, c.verb) == (act.node, act.verb) and act.began - 0.05 <= c.time <= act.ended + 0.05]
        if mine:
            left.remove(mine[0])
    return left
