# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs one case: a guest, its moves from node to node, the faults, and what its owner does meanwhile."""
import os
import re
import threading
import time

import calls
from case import GUESTS, NODES
from hop import Hop
from judge import Judge
from lab import GUEST, VarlinkError
from owner import Book, Owner

POLL_S = 0.02
MOMENT_WAIT_S = 40
ARRIVAL_WAIT_S = 45
FINAL_WAIT_S = 200  # after the last fault was undone
DEAF_WAIT_S = 150  # until the agent calls an operator
OPERATOR_S = 3  # how long he reads what the job asks for
LOOK_ON_S = 0.5
AFTERWARDS_S = 30  # for the targets' agents to finish


def disk_xml():
    return (
        "<disk type='file' device='disk'><driver name='qemu' type='raw' cache='none'/>"
        f"<source file='/var/lib/libvirt/images/{GUEST}.img'/><target dev='vda' bus='virtio'/></disk>"
    )


class Journey:
    def __init__(self, lab, case, port):
        self.lab, self.case, self.port = lab, case, port
        self.watcher = lab.watcher
        self.book = Book(self)
        self.hops = []
        self.fired = []  # [fault, phase, what happened], as they struck
        self.notes = []
        self.threads = []
        self.killed_at, self.killed_node = 0.0, ""  # when and where a fault killed a copy of it
        self.died_lawfully = False
        self.remark = ""  # which of libvirt's or QEMU's own faults it hit
        self.checksum = ""  # of its disk's content
        self.jobs = {node: [] for node in NODES}  # all that the agents have at the end
        self.in_vain = False  # the owner waited in vain
        self.over = threading.Event()
        self.log_sizes = {}
        self.began = time.time()

    def note(self, text):
        self.notes.append(f"{time.time() - self.began:6.2f} s  {text}")

    def hop(self):
        """The hop that is struck, once it has begun."""
        return next((hop for hop in self.hops if hop.struck), None)

    # --- faults ---

    def strike(self, fault):
        hop = self.hop()
        if hop.is_final() and not self.goes_on():
            self.fired.append([fault, "missed", "the job was over"])
            self.note(f"{fault}: too late, the job is over")
            return
        phase = "onward" if hop.is_final() else hop.phase_seen
        self.note(f"{fault} in {phase}")
        struck = [fault, phase, ""]
        self.fired.append(struck)
        for each in self.hops:
            each.disturbed = each.disturbed or not each.is_final()
        try:
            struck[2] = getattr(self, "do_" + fault.kind.replace("-", "_"))(hop, fault) or ""
        except (RuntimeError, OSError) as error:
            struck[2] = f"could not: {error}"
        self.note(f"{fault}: over {struck[2]}")

    def goes_on(self):
        return any(not hop.is_final() for hop in self.hops)

    def away(self, agent, libvirtd, fault):
        """Kills one of them, or both at once, and restarts them."""
        if agent:
            agent.lock.acquire()  # pylint: disable=consider-using-with
            agent.end()
        try:
            if libvirtd:
                with self.lab.libvirtd_locks[libvirtd]:
                    self.lab.run("libvirtd", libvirtd, "kill")
                    time.sleep(fault.length_ms / 1000)
                    self.lab.run("libvirtd", libvirtd, "start")
            else:
                time.sleep(fault.length_ms / 1000)
        finally:
            if agent:
                agent.start()
                agent.lock.release()

    def libvirtd_stop(self, node, fault):
        try:
            self.lab.run("libvirtd", node, "pause")
            time.sleep(fault.length_ms / 1000)
            self.lab.run("libvirtd", node, "resume")
        except RuntimeError:
            if not any(other.kind.endswith(("libvirtd-kill", "-down")) for other in self.case.faults):
                raise
            return "it was killed meanwhile"
        return ""

    def do_agent_kill(self, hop, fault):
        self.away(hop.agent, None, fault)

    def do_target_agent_kill(self, hop, fault):
        self.away(self.lab.agents[hop.target], None, fault)

    def do_source_libvirtd_kill(self, hop, fault):
        self.away(None, hop.source, fault)

    def do_target_libvirtd_kill(self, hop, fault):
        self.away(None, hop.target, fault)

    def do_source_down(self, hop, fault):
        self.away(hop.agent, hop.source, fault)

    def do_target_down(self, hop, fault):
        self.away(self.lab.agents[hop.target], hop.target, fault)

    def do_source_libvirtd_stop(self, hop, fault):
        return self.libvirtd_stop(hop.source, fault)

    def do_target_libvirtd_stop(self, hop, fault):
        return self.libvirtd_stop(hop.target, fault)

    def do_link_cut(self, hop, fault):
        self.lab.run("cut", *(["--silent"] if fault.silent else []), hop.source, hop.target)
        time.sleep(fault.length_ms / 1000)
        self.lab.run("heal", hop.source, hop.target)

    def do_stream_break(self, hop, _fault):
        self.lab.run("break", hop.source)

    def do_abort(self, hop, _fault):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                hop.agent.call("Abort", job=hop.job_id)
                return "accepted"
            except VarlinkError as error:
                return f"refused: {error}"
            except OSError:
                time.sleep(0.05)
        return "the agent does not answer"

    def do_target_qemu_kill(self, hop, _fault):
        until = time.monotonic() + 3
        while True:
            try:
                self.lab.run("qemu", hop.target, GUEST, "kill")
                self.killed_at, self.killed_node = time.time(), hop.target
                break
            except RuntimeError:
                if time.monotonic() > until or hop.is_final():
                    return "there was none"
                time.sleep(0.05)
        # From the switchover on, the target has the only copy.
        time.sleep(0.2)
        ran_there = self.watcher.has_run(hop.target, hop.began)
        self.died_lawfully = ran_there or hop.switched or hop.phase_seen == "post-copy"
        return "it had run there" if ran_there else "it had not run there"

    # --- the way ---

    def follow(self, hop):
        """Waits for the moment, or the end of the job. True: the moment has come."""
        until = time.monotonic() + MOMENT_WAIT_S
        looked = 0.0
        while time.monotonic() < until:
            now = time.monotonic()
            if now - looked > POLL_S:
                hop.look()
                looked = now
            hop.note_phase()
            if hop.is_final():
                return False
            if hop.phase_seen == self.case.moment:
                return True
            time.sleep(0.003)
        self.note("the moment did not come")
        return False

    def after(self, delay_s, function, *arguments):
        thread = threading.Timer(delay_s, function, arguments)
        thread.start()
        self.threads.append(thread)

    def own(self, hop):
        """The owner's turn."""
        plan = self.case.owner
        if plan.arrived:
            until = time.monotonic() + ARRIVAL_WAIT_S
            while not hop.arrived():
                if time.monotonic() > until or self.over.is_set() or (hop.is_final() and hop.job["phase"] != "succeeded"):
                    self.in_vain = True
                    self.note("the owner waited in vain for its arrival")
                    return
                time.sleep(0.02)
            if self.case.disk and plan.writes and hop is self.hops[-1]:
                self.checksum = self.lab.write_image(hop.target)
            time.sleep(plan.delay_ms / 1000)
        for each in self.hops:
            each.disturbed = each.disturbed or not each.is_final()
        Owner(self).act()

    def disturb(self, hop):
        if not self.follow(hop):
            return
        time.sleep(self.case.offset_ms / 1000)
        for fault in self.case.faults:
            self.after(fault.delay_ms / 1000, self.strike, fault)
        if self.case.owner:
            self.after(0 if self.case.owner.arrived else self.case.owner.delay_ms / 1000, self.own, hop)

    def prepare(self):
        case = self.case
        memory, phases = GUESTS[case.guest]
        options = ["--node", case.hops[0].source, "--memory", str(memory), "--phases", phases, "--sweep", "16"]
        if case.transient:
            options.append("--transient")
        if case.disk:
            path = os.path.join(self.lab.directory, "devices")
            with open(path, "w", encoding="utf-8") as file:
                file.write(disk_xml())
            options += ["--xml-extra", path]
            self.checksum = self.lab.write_image(case.hops[0].source)
        self.lab.run("guest", GUEST, *options)
        self.lab.run("mark", GUEST)
        self.log_sizes = {node: calls.size(self.lab.directory, node) for node in NODES}
        self.watcher.begin()
        self.began = time.time()

    def travel(self):
        """Goes move by move, as far as it gets."""
        for index in range(len(self.case.hops)):
            hop = Hop(self, index)
            if index > 0 and self.case.disk and self.checksum == self.lab.checksum(hop.source):
                self.checksum = self.lab.write_image(hop.source)  # so that an old copy can be told from the new one
            hop.disturbed = any(thread.is_alive() for thread in self.threads)
            self.hops.append(hop)
            if not hop.begin():
                return
            if hop.struck:
                self.disturb(hop)
            if not self.wait_to_go_on(hop):
                return

    def wait_to_go_on(self, hop):
        """True: it has arrived, or at least runs there, and the next move can begin."""
        if hop.index + 1 == len(self.case.hops):
            return False
        busy = time.monotonic()
        while time.monotonic() < busy + ARRIVAL_WAIT_S:
            if any(thread.is_alive() for thread in self.threads):
                busy = time.monotonic()
            self.look(hop)
            if self.book.ended_it():
                return False
            if hop.is_final():
                # At the moment of its end, no copy may be running.
                time.sleep(0.15)
                return hop.arrived()
            if hop.plan.early and hop.arrived():
                self.note(f"{hop}: it runs there, and goes on")
                return True
            time.sleep(POLL_S)
        return False

    def look(self, hop):
        if not hop.is_final():
            hop.look()
            if hop.job["stage"] == "post_copy":
                hop.phase_seen = "post-copy"

    def finish(self):
        """Waits until each job has ended, with an operator's help if a job asks for it."""
        healed, asked = time.monotonic(), {}
        while True:
            begun = [hop for hop in self.hops if hop.job_id]
            if any(thread.is_alive() for thread in self.threads):
                healed = time.monotonic()
            elif all(hop.is_final() for hop in begun):
                return
            for hop in begun:
                self.look(hop)
                if hop.is_final() or hop.operated or healed > time.monotonic() - 0.1:
                    continue
                if time.monotonic() > healed + DEAF_WAIT_S and hop.source_is_deaf():
                    self.bury(hop)
                elif hop.asks() != asked.setdefault(hop, ("", 0.0))[0]:
                    asked[hop] = (hop.asks(), time.monotonic())
                elif hop.asks() and time.monotonic() > asked[hop][1] + OPERATOR_S:
                    self.operate(hop)
            if time.monotonic() > healed + FINAL_WAIT_S:
                self.note("a job does not end")
                return
            time.sleep(POLL_S)

    def bury(self, hop):
        """Does what the job asks for when QEMU has lost the end of post-copy."""
        self.note(f"the source's QEMU is deaf; the job asks: {hop.job.get('next_action')}")
        hop.operated = self.died_lawfully = True
        self.remark = "lost by QEMU, at the end of post-copy"
        for node in (hop.target, hop.source):
            self.book.do(node, "destroy", GUEST)

    def operate(self, hop):
        """He knows where the newest copy is, and does what the job says for that case."""
        words = hop.asks()
        hop.operated = True
        self.note(f"{hop}: an operator is asked: {words}")
        newest, _ = self.watcher.ran_last()
        here = self.watcher.nodes_now()
        state = self.lab.state(hop.source)
        if hop.target not in here and self.lab.state(hop.target).startswith("paused"):
            wanted = [("destroy", hop.target)]
            self.remark = "a domain without a QEMU was left at the target"
        elif hop.source in here and newest == hop.source and "post-copy" not in state:
            wanted = [("resume", hop.source)]
        elif hop.source in here and newest == hop.target and hop.target in here and "post-copy" not in state:
            wanted = [("destroy", hop.source)]
        else:
            wanted = [("destroy", node) for node in (hop.source, hop.target) if node in here and node != newest] or [
                ("destroy", node) for node in (hop.source, hop.target) if node in here
            ]
        for verb, node in wanted:
            if verb not in words:
                hop.note(f"WORDS: it needs a {verb} at {node}, of which they say nothing")
            command = re.search(rf"virsh -c (\S+) {verb} (\S+)", words)
            if command:
                hop.note(f"he was told: {command[0]}")
            if not self.book.do(node, verb, GUEST) and self.lab.state(node) == "paused (starting up)":
                self.lab.forget_domain(node)
                self.note(f"{node} was made to forget the domain that it has no QEMU of")

    def afterwards(self):
        """Waits until the jobs at the targets have ended as well."""
        for hop in self.hops:
            for lease in hop.lease_ids:
                try:
                    self.lab.agents[hop.target].call("Release", lease=lease)
                except (OSError, VarlinkError):
                    pass  # it has ended
        until = time.monotonic() + AFTERWARDS_S
        while time.monotonic() < until:
            try:
                self.jobs = {node: agent.jobs() for node, agent in self.lab.agents.items()}
                if all(job["phase"] in ("succeeded", "failed", "aborted") for jobs in self.jobs.values() for job in jobs):
                    return
            except (OSError, VarlinkError, KeyError):
                pass
            time.sleep(0.1)

    def run(self):
        """What is wrong, in words."""
        self.prepare()
        self.travel()
        self.note("on its last way")
        self.finish()
        self.note("all jobs have ended")
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.afterwards()
        self.note("at the targets, too")
        # Gives the last action time to take effect: two copies show only while they run.
        time.sleep(LOOK_ON_S)
        return Judge(self).wrong()

    # --- for the table ---

    def outcome(self):
        hop = self.hop() or self.hops[-1]
        return hop.outcome()

    def onward(self):
        """Outcomes of the moves after the one with the fault."""
        return [hop.outcome() for hop in self.hops if hop.index > self.case.struck]

    def owned(self):
        """What the owner did, and whether that worked."""
        if not self.case.owner:
            return []
        came = "done" if any(act.done for act in self.book.acts) else "in vain" if self.in_vain else "refused" if self.book.acts else "missed"
        return [self.case.owner.kind + (f" ({came})" if came != "done" else "")]
