# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold after each case, and during it.

Never two running copies; never none, except by the owner's will or a known fault; good memory and a good disk; nothing that
the owner did is undone; each job has ended, and what it says is true.
"""
import json
import time

import calls
from case import NODES
from lab import GUEST

ALIVE = ("running", "paused", "idle", "in shutdown", "crashed")
DECLARED_S = 3  # the longest time between a job's looks and its end on record; it looks twice
LATE_S = 0.5


class Judge:
    def __init__(self, journey):
        self.journey, self.lab, self.case = journey, journey.lab, journey.case
        self.watcher, self.book = journey.watcher, journey.book
        self.note = journey.note
        self.struck = {fault.kind for fault, phase, _ in journey.fired if phase != "missed"}
        self.calls = []  # the agents'

    def read_calls(self):
        """The agents' calls to the libvirtds."""
        for node in NODES:
            all_calls = calls.read_calls(self.lab.directory, node, self.journey.log_sizes[node], GUEST)
            self.calls += calls.without(all_calls, [act for act in self.book.acts if act.node == node])
        self.calls.sort()
        for call in self.calls:
            self.journey.notes.append(f"{call.time - self.journey.began:6.2f} s  an agent's call: {call.verb} at {call.node}")

    def wrong(self):
        """Everything that is wrong, in words."""
        self.read_calls()
        self.excuse()
        return [
            *self.jobs_end(),
            *self.harness(),
            *self.never_two(),
            *self.never_none(),
            *self.memory_is_good(),
            *self.disk_is_good(),
            *self.owner_is_heard(),
            *self.words_are_true(),
            *self.leftovers(),
            *self.history_is_whole(),
            *self.causes_are_true(),
        ]

    # --- libvirt's and QEMU's own faults, as described in README.md ---

    def excuse(self):
        if self.watcher.runs() or self.journey.died_lawfully:
            return
        for met, remark in (
            (self.broken_in_the_switch, "lost by QEMU, in the switch to post-copy"),
            (self.ended_by_its_target, "ended in post-copy by the target's libvirtd"),
        ):
            if met():
                self.note(remark)
                self.journey.remark, self.journey.died_lawfully = remark, True
                return

    def broken_in_the_switch(self):
        """QEMU before 10.2 loses a guest whose stream breaks in the switch to post-copy, while the state of its devices is in
        transit: the target gives up, and the source, which believes that the guest runs there, cannot go back."""
        hop = self.journey.hop()
        return (
            "stream-break" in self.struck
            and "load of migration failed" in self.lab.log(hop.target)
            and any("start_post_copy: accepted" in event["message"] for event in hop.job["events"])
        )

    def ended_by_its_target(self):
        """A target's libvirtd may not have noted yet that its guest runs in post-copy, because it was stopped or killed in the switch
        or the link was slow. It ends the only copy when it continues after the stream has broken, or when it is restarted."""
        hop = self.journey.hop()
        if not hop or not any(event["stage"] == "post_copy" for event in hop.job["events"]):
            return False
        log = self.lab.log(hop.target)
        if self.struck & {"target-libvirtd-kill", "target-down"} and "reason=daemon" in log:
            return True
        return (
            "target-libvirtd-stop" in self.struck
            and not self.struck.isdisjoint({"stream-break", "link-cut"})
            and "reason=failed" in log.partition("Migration paused")[2]
        )

    # --- what must hold ---

    def jobs_end(self):
        for hop in self.journey.hops:
            if hop.job_id and not hop.is_final():
                yield f"{hop}: the job is {hop.job['phase']}{', although an operator did what it asks for' if hop.operated else ''}: " + str(
                    hop.job.get("next_action")
                )
        for node, jobs in self.journey.jobs.items():
            for job in jobs:
                if job["direction"] == "incoming" and job["phase"] not in ("succeeded", "failed", "aborted"):
                    yield f"the agent at {node} still follows an arrival: {job['phase']}, {job.get('next_action')}"

    def harness(self):
        for node, agent in self.lab.agents.items():
            if agent.end_status() is not None:
                yield f"the agent at {node} died by itself, status {agent.end_status()}"
        yield from (note for note in self.journey.notes if "BROKEN HISTORY" in note or "WORDS:" in note)
        yield from (f"{fault}: {what}" for fault, _, what in self.journey.fired if what.startswith("could not"))

    def never_two(self):
        for begun, ended, nodes in self.watcher.two():
            yield f"TWO COPIES ran at once, at {nodes}, for {ended - begun:.1f} s from {begun - self.journey.began:.2f} s on"
        for call in self.calls:
            if call.verb != "resume":
                continue
            node, when = self.watcher.ran_last(before=call.time)
            if node and node != call.node:
                yield f"an agent resumed the copy at {call.node}, which is out of date: it had run at {node} {call.time - when:.1f} s before"

    def never_none(self):
        if self.watcher.runs() or self.journey.died_lawfully:
            return
        ended = self.book.ended_it()
        if ended:
            return
        states = self.lab.states()
        paused = [node for node, state in states.items() if state.startswith("paused")]
        if len(paused) == 1 and self.book.done("suspend"):
            # Its owner resumes it, so that its memory can be checked. (A guest that migrates while paused stays paused.)
            self.book.do(paused[0], "resume", GUEST)
            self.lab.wait_for(5, self.watcher.runs, "the guest, resumed by its owner")
            return
        yield f"NO COPY runs, and nobody ended it: {states}"

    def memory_is_good(self):
        truth = json.loads(self.lab.run("truth", GUEST))
        boots = len(self.book.boots())
        self.note(f"truth: {truth['states']}, silent for {truth['longest_silence_ms']} ms at most")
        bad = truth["bad_pages_total"]
        # A boot also resets its clock and its page count.
        if bad or truth["time_backwards"] > 2 * boots or truth["restarts"] > boots:
            yield f"bad pages {bad}, time backwards {truth['time_backwards']}, restarts {truth['restarts']}; {boots} boots by its owner"
        if self.watcher.runs() and truth["silent_now_ms"] > 1000:
            yield f"its heartbeat has been silent for {truth['silent_now_ms']} ms"

    def disk_is_good(self):
        if not self.case.disk:
            return
        # If its owner ended it, its disk is where it ran last.
        node, _ = self.watcher.ran_last()
        sums = {each: self.lab.checksum(each) for each in NODES}
        have = [each for each in NODES if sums[each] == self.journey.checksum]
        if not have:
            yield f"THE DISK is gone: no node has its content; images at {[each for each in NODES if sums[each]]}"
        elif node not in have:
            yield f"the disk at {node}, where it ran last, {'has other content' if sums[node] else 'is gone'}; the right one is at {have}"

    def owner_is_heard(self):
        """No agent undoes what the owner did."""
        for call in self.calls:
            at = f"{call.time - self.journey.began:.2f} s"
            if call.verb in calls.NEVER:
                yield f"an agent called {call.verb} at {call.node}, at {at}"
            if call.verb == "domjobabort":
                yield from self.aborted_his(call, at)
            elif call.verb in calls.STEERING:
                yield from self.steered_his(call, at)
            if call.verb == "resume":
                before = [act for act in self.book.done("suspend", "resume") if act.ended < call.time + 0.2]
                if before and before[-1].verb == "suspend" and before[-1].node == call.node:
                    yield f"an agent resumed, at {at}, what its owner had suspended at {call.node}"
            if call.verb == "undefine":
                yield from self.undefined_his(call, at)

    def aborted_his(self, call, at):
        for act in self.book.acts:
            if act.verb not in ("migrate", "save", "managedsave") or act.node != call.node or act.done:
                continue
            if act.began <= call.time <= act.ended and ("cancel" in act.said or "abort" in act.said):
                yield f"an agent aborted, at {at}, its owner's {act.verb} at {call.node}: {act.said}"

    def steered_his(self, call, at):
        """Only his migration made a QEMU at that node, so the running one was his."""
        for act in self.book.acts:
            ours = any(hop.target == act.to for hop in self.journey.hops)
            if act.to and act.node == call.node and act.began < call.time < act.ended and not ours:
                if act.to in self.watcher.alive(call.time - 0.05, call.time) and act.to in self.watcher.alive(call.time, call.time + 0.1):
                    yield f"an agent called {call.verb}, at {at}, while its owner migrated it from {act.node} to {act.to}"

    def undefined_his(self, call, at):
        book = [act for act in self.book.done("define", "undefine") if act.node == call.node and act.ended < call.time]
        if not book or book[-1].verb != "define":
            return
        defined = book[-1].ended
        was_source = any(hop.source == call.node and hop.began < defined for hop in self.journey.hops if hop.job_id)
        if was_source and call.node in self.watcher.alive(defined - 0.2, defined):
            return  # its domain was still there, stopped or not: the migration must remove that definition
        yield f"an agent undefined, at {at}, what its owner had defined at {call.node} at {defined - self.journey.began:.2f} s"

    def words_are_true(self):
        """The words of the moves, and of the arrivals at the targets."""
        for node, jobs in self.journey.jobs.items():
            for job in jobs:
                result = job.get("result") or {}
                if job["phase"] not in ("succeeded", "failed", "aborted") or "running_at" not in result:
                    continue
                hop = next((each for each in self.journey.hops if each.job_id == job["id"]), None)
                if job["direction"] == "incoming":
                    ends = {"target": node}
                elif hop:
                    ends = {"source": hop.source, "target": hop.target}
                else:
                    continue
                what = f"{job['direction']} job {job['id'][:8]} of {hop or node}"
                for text in self.is_false(result["running_at"], ends, job["finished_usec_realtime"] / 1e6):
                    yield f"{what} ended {job['phase']} at {job['finished_usec_realtime'] / 1e6 - self.journey.began:.2f} s: {text} ({result.get('evidence')})"

    def is_false(self, says, ends, declared):
        since, until = declared - DECLARED_S, declared + LATE_S
        ran, alive = self.watcher.ran(since, until), self.watcher.alive(since, until)
        if says == "none":
            before, after = self.watcher.ran(since, declared), self.watcher.ran(declared, declared + DECLARED_S)
            if before and after and not self.ends_between(since, declared + DECLARED_S):
                yield f"it says that the guest runs nowhere, but it kept running at {sorted(after)}"
        elif says in ends:
            node = ends[says]
            if node not in alive:
                yield f"it says that the guest runs at {node}, which had no QEMU for it"
            elif node not in ran and ran and not self.killed_unseen(node, since, until):
                yield f"it says that the guest runs at {node}, but it ran at {sorted(ran)}"

    def killed_unseen(self, node, since, until):
        """Its only copy was killed there: it may have run for less than the watcher's interval."""
        journey = self.journey
        return journey.died_lawfully and journey.killed_node == node and since < journey.killed_at < until

    def ends_between(self, since, until):
        return any(since < act.ended < until or since < act.began < until for act in self.book.ends())

    def leftovers(self):
        """A copy that is left behind must have been reported."""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            left = list(self.copies_left())
            if not left:
                break
            time.sleep(0.3)
        told = [
            event["message"]
            for jobs in self.journey.jobs.values()
            for job in jobs
            for event in job["events"]
            if "holds" in event["message"] and "copy" in event["message"]
        ]
        for node in left:
            if told:
                self.note(f"a copy is left at {node}: {told[-1]}")
                self.journey.remark = "a stopped copy was left, and told"
            else:
                yield f"{node} still has a QEMU for it, in state {self.lab.state(node)}, and no job reports it"
        if not self.book.acts and not self.case.keeps_source and not self.journey.died_lawfully:
            yield from self.definitions_left(left)

    def copies_left(self):
        """QEMUs other than the one that runs, or ran last."""
        node, _ = self.watcher.ran_last()
        if self.journey.died_lawfully or self.book.ended_it():
            return
        for each in sorted(self.watcher.nodes_now()):
            if each != node:
                yield each

    def definitions_left(self, copies):
        node, _ = self.watcher.ran_last()
        # A job with an unknown outcome says what is at both of its ends.
        unknown = {
            end
            for hop in self.journey.hops
            if hop.is_final() and hop.job.get("result", {}).get("running_at") == "unknown"
            for end in (hop.source, hop.target)
        }
        for each in NODES:
            state = self.lab.state(each)
            if each not in unknown and each != node and each not in copies and not state.startswith(("absent", "unknown")):
                told = any(
                    event["kind"] == "warning" and "definition" in event["message"]
                    for jobs in self.journey.jobs.values()
                    for job in jobs
                    for event in job["events"]
                )
                if not told:
                    yield f"{each} still has the domain: {state}"

    def history_is_whole(self):
        for hop in self.journey.hops:
            numbers = sorted(event["seq"] for event in (hop.job or {}).get("events", []))
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"{hop}: its history has gaps: {numbers}"

    def causes_are_true(self):
        for hop in self.journey.hops:
            if not hop.is_final():
                continue
            if hop.outcome() == "INTERNAL":
                yield f"{hop}: INTERNAL is not an acceptable cause"
            if not hop.disturbed and hop.outcome() not in ("succeeded", "NOT_CONVERGING", "DEADLINE"):
                yield f"{hop}: nothing disturbed it, but it ended as {hop.outcome()}"
        first = self.journey.fired[0] if self.journey.fired else None
        hop = self.journey.hop()
        owner_first = self.case.owner and self.book.acts
        if first and first[0].kind == "abort" and first[2] == "accepted" and hop.is_final() and not owner_first:
            if hop.outcome() not in ("succeeded", "USER_ABORT", "NOT_CONVERGING", "DEADLINE"):
                yield f"the abort came first, but the cause is {hop.outcome()}"
