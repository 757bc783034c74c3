# SPDX-License-Identifier: LGPL-2.1-or-later
"""One move of a journey, as its agent reports it: requested, followed, its events kept."""
import time

from case import CALM_POLICY
from lab import GUEST, VarlinkError, uri

FINAL = ("succeeded", "failed", "aborted")
SILENT_S = 0.03  # three heartbeats
START_WAIT_S = 6


class Hop:
    def __init__(self, journey, index):
        self.journey, self.lab, self.case = journey, journey.lab, journey.case
        self.index = index
        self.plan = self.case.hops[index]
        self.struck = index == self.case.struck
        self.source, self.target = self.plan.source, self.plan.target
        self.agent = self.lab.agents[self.source]
        self.job = None  # as last seen
        self.job_id = None
        self.refused = ""  # why it did not begin
        self.began = time.time()
        self.lease_ids = []
        self.phase_seen = "prepare"
        self.switched = False  # its heartbeat stopped while little was left to copy
        self.history = {}  # seq: event
        self.revision = 0
        self.size, self.grown = 0, time.monotonic()
        self.disturbed = False  # something was done to it, or to something that it needs
        self.operated = False

    def __str__(self):
        return f"{self.source}→{self.target}"

    def note(self, text):
        self.journey.note(f"{self}: {text}")

    # --- its beginning ---

    def policy(self):
        policy = self.case.struck_policy() if self.struck else dict(CALM_POLICY)
        if self.case.disk:
            policy["copy_disks"] = "all"
        return policy

    def lease(self):
        """Asks the target's agent for a lease. Without one it goes there anyway."""
        goals = {"copy_disks": "all"} if self.case.disk else {}
        try:
            job = self.lab.agents[self.target].call(
                "Prepare", timeout=10, domain=GUEST, source=uri(self.source), policy=goals, make_disks=self.case.disk,
                timeout_s=self.plan.lease_s,
            )["job"]  # fmt: skip
        except (OSError, VarlinkError) as error:
            self.note(f"no lease: {str(error)[:160]}")
            return
        self.lease_ids.append(job["id"])
        self.note(f"leased{', with images' if job['lease']['images'] else ''}")

    def begin(self, patience_s=START_WAIT_S):
        """Starts it. False: it did not begin, and `refused` says why."""
        self.lab.run("link", f"{self.case.link_mbit}mbit" if self.struck else "1gbit", self.source, self.target)
        if self.plan.lease_s:
            self.lease()
        if self.case.disk:
            self.lab.empty_image(self.target)
        parameters = {"domain": GUEST, "target": uri(self.target), "policy": self.policy()}
        if self.struck and self.case.forward:
            self.lab.run("forward", self.source, str(self.journey.port), self.target)
            address = uri(self.source).removeprefix("qemu+tcp://").removesuffix("/system")
            parameters["migrate_uri"] = f"tcp://{address}:{self.journey.port}"
        until = time.monotonic() + patience_s
        while True:
            try:
                self.began = time.time()
                self.job = self.agent.call("Start", request_key=f"{self.case.number}-{self.index}", **parameters)["job"]
                break
            except (OSError, VarlinkError) as error:
                self.refused = str(error).partition(" ")[0] if isinstance(error, VarlinkError) else "no agent"
                if time.monotonic() > until:
                    self.note(f"not begun: {str(error)[:200]}")
                    return False
            time.sleep(0.1)
        self.job_id, self.refused = self.job["id"], ""
        self.note(f"begun, job {self.job_id[:8]}")
        return True

    # --- its progress ---

    def is_final(self):
        return self.job is not None and self.job["phase"] in FINAL

    def look(self):
        """The job as it is now; its earlier events must still be there."""
        try:
            job = self.agent.call("Get", job=self.job_id)["job"]
        except (OSError, VarlinkError):
            return
        if job["revision"] < self.revision:
            self.note(f"BROKEN HISTORY: revision {job['revision']} after {self.revision}")
        self.revision = job["revision"]
        for event in job["events"]:
            known = self.history.setdefault(event["seq"], event)
            # If the agent was killed before it wrote an event that it had shown, the event comes again, in the same words.
            same = all(known.get(key) == event.get(key) for key in ("kind", "phase", "stage", "message"))
            if not same:
                self.note(f"BROKEN HISTORY: event {event['seq']} was {known['message']!r}, is {event['message']!r}")
                self.history[event["seq"]] = event
        if not self.is_final() and job["phase"] in FINAL:
            self.note(f"its job has ended: {self.outcome(job)}, runs at {job.get('result', {}).get('running_at')}")
        self.job = job

    def note_phase(self):
        """Finds the phase, from the guest's heartbeat and the job."""
        now, size = time.monotonic(), self.lab.serial_size()
        silent = now - self.grown > SILENT_S and size == self.size
        if size != self.size:
            self.size, self.grown = size, now
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

    def arrived(self):
        """It runs at the target and nowhere else."""
        return self.lab.watcher.runs_at(self.target)

    def outcome(self, job=None):
        job = job or self.job or {}
        failure = job.get("failure")
        return failure["cause"] if failure else job.get("phase", self.refused or "lost")

    def tells(self, words):
        return any(words in event["message"] for event in (self.job or {}).get("events", []))

    # --- when it needs an operator ---

    def asks(self):
        """What it asks an operator to do, in its own words; empty if nothing."""
        job = self.job or {}
        words = f"{job.get('next_action') or ''} {(job.get('recovery') or {}).get('evidence') or ''}"
        return words if job.get("phase") == "recovering" and "operator" in words else ""

    def source_is_deaf(self):
        """QEMU before 8.2 can hang if the stream breaks after the last page was sent and before the target had it: the
        migration thread waits for the return path's, and that one for a recovery that nobody can begin."""
        error = ((self.job or {}).get("recovery") or {}).get("error", "")
        return "still reports its stream as intact" in error and self.lab.qemu_threads(self.source) >= {
            "live_migration",
            "return path",
        }
