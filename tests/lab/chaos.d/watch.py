# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the guest runs at any time, from what the kernel says about its QEMUs' virtual CPUs.

No libvirtd is asked, because it may be stopped, dead or wrong. Each QEMU has a thread for its virtual CPU. While the guest
runs, its heartbeat alone costs that thread a hundredth of its time; when the guest is stopped, the thread does not run at all.
So a copy runs if its thread has got CPU time since the last look. A new QEMU's CPU is busy for a moment, but no migration is so
quick that an arriving guest would already run by then.
"""
import collections
import os
import threading
import time

INTERVAL_S = 0.04
RUNS_NS = 100000  # a stopped one takes none; this is far below what a running one takes
MADE_S = 0.5
ENDING_S = 0.4
TWO_IN_A_ROW = 3  # a switch from one to another falls into one interval

Sample = collections.namedtuple("Sample", "time alive ran")  # sets of (node, pid)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # it has ended
        return ""


class Watcher(threading.Thread):
    def __init__(self, directory, nodes, guest):
        super().__init__(daemon=True)
        self.inits = {node: int(read(os.path.join(directory, f"node-{node}", "init.pid")).split()[0]) for node in nodes}
        self.mark = f"guest={guest},"
        self.cpus = {}  # (node, pid): path of its CPU thread's schedstat, or None while there is no such thread
        self.got_ns = {}
        self.since = {}  # when its CPU thread was first seen
        self.samples = []
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.wait(INTERVAL_S):
            self.look()

    def stop(self):
        self.stopping.set()
        self.join()

    def begin(self):
        """Forgets everything seen before."""
        self.samples = []

    def find(self, node):
        """QEMUs of the guest on a node: libvirt makes them children of the node's init."""
        init = self.inits[node]
        for pid in read(f"/proc/{init}/task/{init}/children").split():
            key = (node, int(pid))
            if key in self.cpus:
                yield key
            elif read(f"/proc/{pid}/comm").startswith("qemu-system") and self.mark in read(f"/proc/{pid}/cmdline"):
                self.cpus[key] = None
                yield key

    def got(self, key):
        """How long its CPU thread has run, in ns."""
        pid = key[1]
        if not self.cpus[key]:
            try:
                threads = os.listdir(f"/proc/{pid}/task")
            except OSError:
                return 0
            for thread in threads:
                if read(f"/proc/{pid}/task/{thread}/comm").startswith("CPU 0/"):
                    self.cpus[key] = f"/proc/{pid}/task/{thread}/schedstat"
        fields = read(self.cpus[key]).split() if self.cpus[key] else []
        return int(fields[0]) if fields else 0

    def look(self):
        now, alive, ran = time.time(), set(), set()
        for node in self.inits:
            for key in self.find(node):
                got = self.got(key)
                if key in self.got_ns and got - self.got_ns[key] > RUNS_NS:
                    ran.add(key)
                self.got_ns[key] = got
                if self.cpus[key]:
                    self.since.setdefault(key, now)
                alive.add(key)
        if len(alive) > 1:
            ran = {key for key in ran if now > self.since.get(key, now) + MADE_S}
        for key in set(self.cpus) - alive:
            del self.cpus[key]
            self.got_ns.pop(key, None)
            self.since.pop(key, None)
        self.samples.append(Sample(now, frozenset(alive), frozenset(ran)))

    # --- what was seen; times in seconds since the epoch ---

    def two(self):
        """When two copies ran at once: (from, until, nodes)."""
        found, begun, row = [], 0.0, 0
        samples = list(self.samples)
        end = {key: sample.time for sample in samples for key in sample.alive}  # when each was seen last
        for sample in samples:
            # A QEMU that is being ended runs no guest, but its CPU thread still has work.
            stay = {key for key in sample.ran if end[key] > sample.time + ENDING_S or end[key] == samples[-1].time}
            if len(stay) < 2:
                row = 0
                continue
            row += 1
            if row == 1:
                begun = sample.time
            if row >= TWO_IN_A_ROW:
                nodes = sorted(node for node, _ in stay)
                if row > TWO_IN_A_ROW:
                    found.pop()
                found.append((begun, sample.time, nodes))
        return found

    def ran(self, since, until):
        """Nodes where it ran at any time in between."""
        return {node for sample in list(self.samples) if since <= sample.time <= until for node, _ in sample.ran}

    def alive(self, since, until):
        """Nodes that had a QEMU for it at any time in between."""
        return {node for sample in list(self.samples) if since <= sample.time <= until for node, _ in sample.alive}

    def ran_last(self, before=None):
        """(node, when) where it ran last."""
        for sample in reversed(list(self.samples)):
            if before is not None and sample.time > before:
                continue
            if len(sample.ran) == 1:
                return next(iter(sample.ran))[0], sample.time
        return None, 0.0

    def has_run(self, node, since):
        return node in self.ran(since, time.time())

    def runs_at(self, node):
        """It runs there and nowhere else, just now."""
        last = self.samples[-3:]
        return len(last) == 3 and all({where for where, _ in sample.ran} == {node} for sample in last)

    def runs(self):
        return any(sample.ran for sample in self.samples[-5:])

    def nodes_now(self):
        """Nodes that have a QEMU for it."""
        return {node for node, _ in self.samples[-1].alive} if self.samples else set()

    @staticmethod
    def words(copies):
        return " ".join(f"{node} ({pid})" for node, pid in sorted(copies)) or "-"

    def story(self, since):
        """One line for each change."""
        before, lines = None, []
        for sample in list(self.samples):
            state = (sample.alive, sample.ran)
            if state != before:
                lines.append(f"{sample.time - since:6.2f} s  there: {self.words(sample.alive)}; runs: {self.words(sample.ran)}")
                before = state
        return lines
