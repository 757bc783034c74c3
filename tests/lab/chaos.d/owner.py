# SPDX-License-Identifier: LGPL-2.1-or-later
"""An owner, or an operator, with virsh; and a record of what they did."""
import os
import re
import time
from dataclasses import dataclass

from case import NODES
from lab import GUEST, uri

VIRSH_S = 45  # libvirt itself waits 30 s for another job to end
MIGRATE_S = 20
SANE_S = 5  # how long he waits until it runs nowhere, before he starts it


@dataclass
class Act:
    node: str
    verb: str
    began: float
    ended: float = 0.0
    done: bool = False
    said: str = ""
    to: str = ""  # of a migration

    def __str__(self):
        return f"{self.verb} at {self.node}: {'done' if self.done else self.said or 'failed'}"


class Book:
    """What was done to the guest by people, in order."""

    def __init__(self, journey):
        self.journey, self.lab = journey, journey.lab
        self.acts = []

    def do(self, node, verb, *arguments, timeout=VIRSH_S, to=""):
        act = Act(node, verb, time.time(), ended=float("inf"), to=to)
        self.acts.append(act)
        act.done, act.said = self.lab.virsh(node, verb, *arguments, timeout=timeout)
        act.said = act.said.replace("error: ", "").replace("\n", " ")
        act.ended = time.time()
        self.journey.note(f"virsh {act}")
        return act.done

    def done(self, *verbs):
        return [act for act in self.acts if act.done and act.verb in verbs]

    def ended_it(self):
        """The act after which it runs nowhere, by its owner's will. Destroying an old copy does not count."""
        ends = self.ends()
        begins = [act.ended for act in self.done("start", "restore")]
        return ends[-1] if ends and not any(begun > ends[-1].ended for begun in begins) else None

    def ends(self):
        """The acts that ended it where it ran."""
        acts = self.done("destroy", "managedsave", "save")
        return [act for act in acts if self.lab.watcher.ran_last(before=act.began)[0] == act.node]

    def boots(self):
        """Cold starts. A start after a managed save continues from it."""
        saves = self.done("managedsave")
        return [act for act in self.done("start") if not any(save.ended < act.began for save in saves)]


class Owner:
    """Does what the case has drawn for the owner."""

    def __init__(self, journey):
        self.journey, self.lab, self.plan = journey, journey.lab, journey.case.owner
        self.book = journey.book
        self.hop = journey.case.hops[journey.case.struck]

    def here(self):
        """Where he believes it to be."""
        nodes = self.lab.watcher.nodes_now()
        node, _ = self.lab.watcher.ran_last()
        if node not in nodes and len(nodes) == 1:
            return next(iter(nodes))
        return node or self.hop.source

    def act(self):
        getattr(self, "do_" + self.plan.kind.replace("-", "_"))()

    def pause(self):
        time.sleep(self.plan.pause_ms / 1000)

    def do_suspend(self):
        self.book.do(self.here(), "suspend", GUEST)

    def do_suspend_resume(self):
        if self.book.do(self.here(), "suspend", GUEST):
            self.pause()
            for node in [self.here(), *NODES]:
                if self.lab.state(node).startswith("paused (user)") and self.book.do(node, "resume", GUEST):
                    return

    def do_destroy(self):
        self.book.do(self.here(), "destroy", GUEST)

    def start_where_it_was(self, node):
        """He would not start a second copy."""
        until = time.monotonic() + SANE_S
        while self.lab.watcher.nodes_now():
            if time.monotonic() > until:
                return
            time.sleep(0.05)
        self.book.do(node, "start", GUEST)

    def do_restart(self):
        node = self.here()
        if self.book.do(node, "destroy", GUEST):
            self.pause()
            self.start_where_it_was(node)

    def do_failed_start(self):
        """He powers it off, breaks its definition, and the start fails."""
        node = self.here()
        if not self.book.do(node, "destroy", GUEST):
            return
        path = os.path.join(self.lab.directory, "broken.xml")
        with open(self.xml(), encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"<kernel>.*</kernel>", "<kernel>/nowhere/kernel</kernel>", text))
        if self.book.do(node, "define", path):
            self.start_where_it_was(node)

    def do_managedsave(self):
        self.book.do(self.here(), "managedsave", GUEST)

    def do_managedsave_start(self):
        node = self.here()
        if self.book.do(node, "managedsave", GUEST):
            self.pause()
            self.start_where_it_was(node)

    def do_save_restore(self):
        node, path = self.here(), os.path.join(self.lab.directory, "saved")
        if self.book.do(node, "save", GUEST, path):
            self.pause()
            if not self.lab.watcher.nodes_now():
                self.book.do(node, "restore", path)

    def xml(self):
        return os.path.join(self.lab.directory, "guests", GUEST, "domain.xml")

    def do_undefine_source(self):
        self.book.do(self.hop.source, "undefine", GUEST)

    def do_undefine_target(self):
        self.book.do(self.hop.target, "undefine", GUEST)

    def do_define_source(self):
        self.book.do(self.hop.source, "define", self.xml())

    def do_define_target(self):
        self.book.do(self.hop.target, "define", self.xml())

    def do_migrate(self):
        """To the third node, or to where it came from."""
        here = self.here()
        third = next(node for node in NODES if node not in (self.hop.source, self.hop.target))
        to = self.hop.source if self.plan.home and here != self.hop.source or here == third else third
        options = ["--live", "--p2p", "--bandwidth", "32"]  # MiB/s: slow enough to be disturbed
        if self.plan.persistent:
            options += ["--persistent", "--undefinesource"]
        if self.journey.case.disk:
            self.lab.empty_image(to)
            options.append("--copy-storage-all")
        if not self.book.do(here, "migrate", *options, GUEST, uri(to), to=to, timeout=MIGRATE_S):
            # A guest that writes faster than that never arrives: he gives up. The migration outlives its virsh, so he aborts it.
            ours = any(hop.target == to and not hop.is_final() and not hop.tells("nothing was started") for hop in self.journey.hops)
            if to in self.lab.watcher.nodes_now() and "no answer" in self.book.acts[-1].said and not ours:
                self.book.do(here, "domjobabort", GUEST)
