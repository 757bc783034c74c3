# SPDX-License-Identifier: LGPL-2.1-or-later
"""One move under faults: carries a case out, and judges what came of it."""
import json
import threading
import time

from case import GUESTS, POLICIES
from lab import TARGET_URI, VarlinkError

FINAL = ("succeeded", "failed", "aborted")
GUEST = "chaos"
POLL_S = 0.02
SILENT_S = 0.03  # three heartbeats
MOMENT_WAIT_S = 60
FINAL_WAIT_S = 240  # after the last fault was undone
DEAF_WAIT_S = 150  # until the agent calls an operator


class Move:
    def __init__(self, lab, case, port):
        self.lab, self.case, self.port = lab, case, port
        self.job = None  # as last seen
        self.job_id = None
        self.phase_seen = "prepare"
        self.switched = False  # its heartbeat paused while little was left to copy
        self.fired = []  # (fault, phase, what happened), as they struck
        self.notes = []
        self.history = {}  # seq: event
        self.revision = 0
        self.died_lawfully = False
        self.killed_usec = 0  # when its only copy was dead
        self.operated = False
        self.remark = ""  # what of libvirt's or QEMU's own was met
        self.threads = []
        self.started = time.monotonic()

    def note(self, text):
        self.notes.append(f"{time.monotonic() - self.started:6.2f} s  {text}")

    # --- faults ---

    def strike(self, fault):
        if self.is_final():
            self.fired.append((fault, "missed", "the job was over"))
            self.note(f"{fault}: too late, the job is over")
            return
        phase = self.phase_seen
        self.note(f"{fault} in {phase}")
        struck = [fault, phase, ""]
        self.fired.append(struck)
        try:
            struck[2] = getattr(self, "do_" + fault.kind.replace("-", "_"))(fault) or ""
        except (RuntimeError, OSError) as error:
            struck[2] = f"could not: {error}"
        self.note(f"{fault}: over {struck[2]}")

    def do_agent_kill(self, fault):
        with self.lab.agent_lock:
            self.lab.agent_end()
            time.sleep(fault.length_ms / 1000)
            self.lab.agent_start()

    def libvirtd_kill(self, node, fault):
        self.lab.run("libvirtd", node, "kill")
        time.sleep(fault.length_ms / 1000)
        self.lab.restart_libvirtd(node)

    def libvirtd_stop(self, node, fault):
        try:
            self.lab.run("libvirtd", node, "pause")
            time.sleep(fault.length_ms / 1000)
            self.lab.run("libvirtd", node, "resume")
        except RuntimeError:
            if not any(other.kind.endswith("libvirtd-kill") for other in self.case.faults):
                raise
            return "it was killed meanwhile"
        return ""

    def do_source_libvirtd_kill(self, fault):
        self.libvirtd_kill("a", fault)

    def do_target_libvirtd_kill(self, fault):
        self.libvirtd_kill("b", fault)

    def do_source_libvirtd_stop(self, fault):
        return self.libvirtd_stop("a", fault)

    def do_target_libvirtd_stop(self, fault):
        return self.libvirtd_stop("b", fault)

    def do_link_cut(self, fault):
        self.lab.run("cut", *(["--silent"] if fault.silent else []))
        time.sleep(fault.length_ms / 1000)
        self.lab.run("heal")

    def do_stream_break(self, _fault):
        self.lab.run("break", "a")

    def do_abort(self, _fault):
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                self.lab.call("Abort", job=self.job_id)
                return "accepted"
            except VarlinkError as error:
                return f"refused: {error}"
            except OSError:
                time.sleep(0.05)
        return "could not: the agent does not answer"

    def do_target_qemu_kill(self, _fault):
        until = time.monotonic() + 3
        while True:
            try:
                # From the switchover on the target has the only copy.
                state = self.lab.run("virsh", "b", "-q", "domstate", "--reason", GUEST, check=False, timeout=30)
                self.lab.run("qemu", "b", GUEST, "kill")
                self.killed_usec = time.time_ns() // 1000
                break
            except RuntimeError:
                if time.monotonic() > until or self.is_final():
                    return "there was none"
                time.sleep(0.05)
        self.died_lawfully = state.startswith("running") or self.switched or self.phase_seen == "post-copy"
        return f"it was {state.strip() or 'not to be asked'}"

    # --- the way through a move ---

    def is_final(self):
        return self.job is not None and self.job["phase"] in FINAL

    def look(self):
        """The job as it is now; what it told before must still be there."""
        try:
            job = self.lab.call("Get", job=self.job_id)["job"]
        except (OSError, VarlinkError):
            return
        if job["revision"] < self.revision:
            self.note(f"BROKEN HISTORY: revision {job['revision']} after {self.revision}")
        self.revision = job["revision"]
        for event in job["events"]:
            known = self.history.setdefault(event["seq"], event)
            if known != event:
                self.note(f"BROKEN HISTORY: event {event['seq']} was {known['message']!r}, is {event['message']!r}")
                self.history[event["seq"]] = event
        self.job = job

    def follow(self):
        """Until the moment is there, or the job is over. True: it is there."""
        size, grown = self.lab.serial_size(GUEST), time.monotonic()
        until = grown + MOMENT_WAIT_S
        looked = 0.0
        while time.monotonic() < until:
            now = time.monotonic()
            new_size = self.lab.serial_size(GUEST)
            silent = now - grown > SILENT_S and new_size == size
            if new_size != size:
                size, grown = new_size, now
            if now - looked > POLL_S:
                self.look()
                looked = now
            self.note_phase(silent)
            if self.is_final():
                return False
            if self.phase_seen == self.case.moment:
                return True
            time.sleep(0.003)
        self.note("the moment did not come")
        return False

    def note_phase(self, silent):
        job = self.job
        if not job or job["phase"] not in ("migrating", "recovering"):
            return
        progress = job.get("progress") or {}
        total, remaining = progress.get("memory_total_bytes", 0), progress.get("memory_remaining_bytes", 0)
        if job["stage"] == "post_copy":
            self.phase_seen = "end" if total and remaining < total * 0.08 else "post-copy"
        elif self.switched:
            self.phase_seen = "switchover" if silent else "end"
        elif total and silent and (progress.get("iteration", 0) >= 2 or remaining < total * 0.4):
            self.switched = True
            self.phase_seen = "switchover"
        elif progress.get("memory_processed_bytes", 0) > 0:
            self.phase_seen = "pre-copy"

    def begin(self):
        memory, phases = GUESTS[self.case.guest]
        arguments = ["--memory", str(memory), "--phases", phases, "--sweep", "16"]
        self.lab.run("link", f"{self.case.link_mbit}mbit")
        self.lab.run("guest", GUEST, *arguments, *(["--transient"] if self.case.transient else []))
        policy = dict(POLICIES[self.case.policy])
        if self.case.patient:
            policy["completion_timeout_s_per_gib"] = 2000
        parameters = {"domain": GUEST, "target": TARGET_URI, "policy": policy}
        if self.case.forward:
            self.lab.run("forward", "a", str(self.port), "b")
            parameters["migrate_uri"] = f"tcp://10.77.0.1:{self.port}"
        self.lab.run("mark", GUEST)
        self.started = time.monotonic()
        self.job = self.lab.call("Start", **parameters)["job"]
        self.job_id = self.job["id"]

    def run(self):
        self.begin()
        if self.follow():
            time.sleep(self.case.offset_ms / 1000)
            for fault in self.case.faults:
                thread = threading.Timer(fault.delay_ms / 1000, self.strike, [fault])
                thread.start()
                self.threads.append(thread)
        healed = time.monotonic()
        while not self.is_final() or any(thread.is_alive() for thread in self.threads):
            if any(thread.is_alive() for thread in self.threads):
                healed = time.monotonic()
            if time.monotonic() > healed + DEAF_WAIT_S and not self.operated and self.source_is_deaf():
                self.operate()
            if time.monotonic() > healed + FINAL_WAIT_S:
                self.note("the job does not end")
                break
            if not self.is_final():
                self.look()
                if self.job["stage"] == "post_copy":
                    self.phase_seen = "post-copy"
            time.sleep(POLL_S)
        return self.judge()

    # --- what came of it ---

    def broken_in_the_switch(self):
        """QEMU before 10.2 loses a guest whose stream breaks in the switch to post-copy, while the state of its devices is
        on its way: the target gives up, and the source, which takes it for running there, cannot go back."""
        if not any(fault.kind == "stream-break" and phase != "missed" for fault, phase, _ in self.fired):
            return False
        return "load of migration failed" in self.lab.run("log", "b", GUEST, check=False) and any(
            "start_post_copy: accepted" in event["message"] for event in self.job["events"]
        )

    def ended_by_its_target(self):
        """A target's libvirtd that has not noted yet that its guest runs in post-copy, since it was stopped or killed in the switch
        or the link was slow, ends the only copy: when it goes on and the stream has broken meanwhile, or when it is started again."""
        struck = {fault.kind for fault, phase, _ in self.fired if phase != "missed"}
        log = self.lab.run("log", "b", GUEST, check=False)
        if "target-libvirtd-kill" in struck and "reason=daemon" in log:
            return True
        return (
            "target-libvirtd-stop" in struck
            and not struck.isdisjoint({"stream-break", "link-cut"})
            and "reason=failed" in log.partition("Migration paused")[2]
        )

    def outcome(self):
        failure = (self.job or {}).get("failure")
        return failure["cause"] if failure else (self.job or {}).get("phase", "lost")

    def ends_agree(self, truth, where):
        """What is wrong with where the guest is; the lab's truth against the agent's word."""
        job, running_on = self.job, truth["running_on"]
        says = job.get("result", {}).get("running_at")
        if job["phase"] == "succeeded":
            expected = "b"
        else:
            expected = {"source": "a", "target": "b"}.get(says)
        if not running_on and self.died_lawfully and job["phase"] == "succeeded":
            if job["finished_usec_realtime"] > self.killed_usec:
                yield "its only copy was killed, and after that the job says that it runs at the target"
            return
        if not running_on and self.died_lawfully:
            if (job["phase"], says, self.outcome()) != ("failed", "none", "GUEST_STOPPED"):
                yield f"its only copy was killed, and the job says {job['phase']}, {self.outcome()}, running at {says}"
            return
        if running_on != [expected]:
            yield f"it runs on {running_on or 'no node'}, the job says {job['phase']}, running at {says} (states {where})"
        if truth["bad_pages"] or truth["time_backwards"] or truth["restarts"]:
            yield f"bad pages {truth['bad_pages']}, time backwards {truth['time_backwards']}, restarts {truth['restarts']}"
        if len(running_on) == 1 and truth["silent_now_ms"] > 1000:
            yield f"its heartbeat is silent for {truth['silent_now_ms']} ms"

    def leftovers(self, truth):
        for node in "ab":
            if node in truth["running_on"]:
                continue
            if self.died_lawfully and not truth["running_on"]:
                # Its definition, as of any guest that has stopped, and at the source what post-copy left there.
                continue
            domains = self.lab.domains(node)
            if GUEST in domains:
                yield f"node {node} still has the domain: {domains[GUEST]}"
            for process in self.lab.qemu_processes(node):
                yield f"node {node} still has a QEMU: {process[:60]}"

    def killed_after_the_switch(self):
        """The state that was asked for before the kill may have been of before the switch: libvirt at the source has the last
        word, for it lets go of its copy only when the target's has been started."""
        ends = [line for line in self.lab.run("log", "a", GUEST, check=False).splitlines() if "shutting down" in line]
        return self.killed_usec > 0 and bool(ends) and ends[-1].endswith("reason=migrated")

    def stopped_copy_was_told(self):
        """A libvirtd that is killed after the target has started the guest, and before the source has let go of it, leaves
        the source's copy stopped for whoever manages it to judge (libvirt's phase PERFORM3_DONE). The agent destroys
        nothing, and says so; that is what an operator does then."""
        return (
            self.job["phase"] == "succeeded"
            and any(fault.kind == "source-libvirtd-kill" and phase != "missed" for fault, phase, _ in self.fired)
            and any("the source still holds the stopped copy" in event["message"] for event in self.job["events"])
        )

    def source_is_deaf(self):
        """QEMU before 8.2 can hang if the stream breaks after the last page was sent and before the target had it: the
        migration's thread waits for the one that reads the answers, and that one for a recovery that nobody can begin."""
        if not any(fault.kind == "stream-break" and phase != "missed" for fault, phase, _ in self.fired):
            return False
        error = ((self.job or {}).get("recovery") or {}).get("error", "")
        return "takes its stream for whole" in error and self.lab.qemu_threads("a") >= {"live_migration", "return path"}

    def operate(self):
        """What the job asks an operator for."""
        self.note(f"the source's QEMU is deaf; the job asks: {self.job.get('next_action')}")
        self.operated = self.died_lawfully = True
        self.remark = "lost by QEMU, at the end of post-copy"
        for node in "ba":
            self.lab.run("virsh", node, "-q", "destroy", GUEST, check=False)

    def judge(self):
        """Everything that is wrong, in words."""
        wrong = []
        if not self.is_final():
            wrong.append(f"the job is {self.job['phase'] if self.job else 'unknown'}: {(self.job or {}).get('next_action')}")
        if self.lab.agent_end_status() is not None:
            wrong.append(f"the agent died by itself, status {self.lab.agent_end_status()}")
        wrong += [note for note in self.notes if "BROKEN HISTORY" in note]
        wrong += [f"{fault}: {what}" for fault, _, what in self.fired if what.startswith("could not")]
        truth = json.loads(self.lab.run("truth", GUEST))
        if not truth["running_on"] and self.killed_after_the_switch():
            self.died_lawfully = True
        if not truth["running_on"] and self.broken_in_the_switch():
            self.note("the stream broke while the guest's devices were on their way, in the switch to post-copy")
            self.remark = "lost by QEMU, in the switch to post-copy"
            self.died_lawfully = True
        if not truth["running_on"] and not self.died_lawfully and self.ended_by_its_target():
            self.note("the target's libvirtd, which did not know that the guest ran there, ended it")
            self.remark = "ended in post-copy by the target's libvirtd"
            self.died_lawfully = True
        self.note(f"truth: {truth['states']}, silent for {truth['longest_silence_ms']} ms at the longest")
        if self.is_final():
            wrong += self.ends_agree(truth, truth["states"])
            if self.stopped_copy_was_told():
                self.note("libvirtd was killed between the guest's start at the target and its end at the source")
                self.remark = "a stopped copy was left, and told"
                self.lab.run("virsh", "a", "-q", "destroy", GUEST)
                self.lab.run("virsh", "a", "-q", "undefine", GUEST, check=False)  # nothing, if it was transient
            left = list(self.leftovers(truth))
            until = time.monotonic() + 10
            while left and time.monotonic() < until:
                time.sleep(0.5)
                left = list(self.leftovers(truth))
            wrong += left
            numbers = sorted(event["seq"] for event in self.job["events"])
            if numbers != list(range(1, len(numbers) + 1)):
                wrong.append(f"its history has gaps: {numbers}")
            wrong += self.cause_is_true()
        return wrong

    def cause_is_true(self):
        """The first cause: of an abort that came first and was accepted, nothing else can be."""
        first = self.fired[0] if self.fired else None
        if first and first[0].kind == "abort" and first[2] == "accepted" and self.job["phase"] != "succeeded":
            if self.outcome() not in ("USER_ABORT", "NOT_CONVERGING", "DEADLINE"):
                yield f"aborted first, and the cause is {self.outcome()}"
        if not any(phase != "missed" for _, phase, _ in self.fired):
            if self.outcome() not in ("succeeded", "NOT_CONVERGING", "DEADLINE"):
                yield f"nothing was done to it, and it ended as {self.outcome()}"
        if self.outcome() == "INTERNAL":
            yield "INTERNAL is no cause"
