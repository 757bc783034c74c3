# SPDX-License-Identifier: LGPL-2.1-or-later
"""One case of the chaos, all of it drawn from a seed and the number of the case."""
import random
from dataclasses import dataclass, field
from typing import Optional

NODES = "abc"

# name: memory in MiB, phases as for `lab guest --phases`
GUESTS = {
    "idle": (64, "0/0"),
    "light": (64, "16/20"),
    "medium": (80, "32/20"),
    "near": (80, "48/30"),
    "hopeless": (80, "48/200"),
    "bursty": (80, "40/10:2,40/150:2"),
}

POLICIES = {
    "plain": {},
    "post-copy": {"allow_post_copy": True},
    "pause": {"max_pause_ms": 5000},
    "auto-converge": {"allow_auto_converge": True, "max_pause_ms": 2000},
    "all": {"allow_post_copy": True, "allow_auto_converge": True, "max_pause_ms": 3000},
    "limited": {"bandwidth_bytes_per_s": 24 << 20},
}
# For the moves without a fault: they end, whatever the guest does.
CALM_POLICY = {"max_pause_ms": 10000}

# When the first fault strikes: the condition, and up to how many ms after it was seen.
MOMENTS = {
    "prepare": 500,
    "pre-copy": 1200,
    "switchover": 120,
    "post-copy": 1500,
    "end": 300,
}

# fault: weight as a second fault, shortest and longest time in ms until it is undone (0, 0: nothing to undo)
FAULTS = {
    "agent-kill": (5, 0, 5000),
    "source-libvirtd-kill": (3, 200, 5000),
    "target-libvirtd-kill": (3, 200, 5000),
    "source-libvirtd-stop": (2, 500, 15000),
    "target-libvirtd-stop": (2, 500, 15000),
    "link-cut": (5, 1000, 40000),
    "stream-break": (4, 0, 0),
    "abort": (2, 0, 0),
    "target-qemu-kill": (2, 0, 0),
    # agent and libvirtd at once, as when a host is in trouble
    "source-down": (4, 1000, 12000),
    "target-down": (2, 500, 6000),
    "target-agent-kill": (3, 200, 12000),
}
SECOND_FAULT = 0.4  # probability
SECOND_DELAY_MS = 6000

# What an owner does with virsh: weight.
OWNERS = {
    "suspend": 3,
    "suspend-resume": 3,
    "destroy": 4,
    "restart": 2,
    "failed-start": 3,
    "managedsave": 3,
    "managedsave-start": 2,
    "save-restore": 2,
    "undefine-source": 1,
    "undefine-target": 2,
    "define-source": 2,
    "define-target": 3,
    "migrate": 5,
}
OWNER = 0.45  # probability
OWNER_DELAY_MS = 4000

DISK, LEASE, KEEPS_SOURCE = 0.3, 0.35, 0.08


@dataclass
class Fault:
    kind: str
    delay_ms: int  # after the moment
    length_ms: int = 0  # until it is undone
    silent: bool = False  # of a cut: packets vanish, instead of an interface that is down

    def __str__(self):
        text = self.kind
        if self.length_ms:
            text += f" for {self.length_ms / 1000:.1f} s"
        if self.silent:
            text += " (silent)"
        return text


@dataclass
class OwnerPlan:
    kind: str
    arrived: bool  # delay_ms counts from the guest's arrival, not from the moment
    delay_ms: int
    pause_ms: int  # between his act and the one that undoes it
    home: bool  # of a migration: to where the guest came from, not to the third node
    persistent: bool  # of a migration: --persistent --undefinesource
    writes: bool  # the guest writes to its disk after its arrival, before he acts

    def __str__(self):
        return f"owner: {self.kind} {self.delay_ms / 1000:.1f} s {'after its arrival' if self.arrived else 'later'}"


@dataclass
class HopPlan:
    source: str
    target: str
    lease_s: int  # 0: none
    early: bool  # the next hop begins as soon as the guest runs at this one's target, whatever the job says

    def __str__(self):
        return f"{self.target}{f' (lease of {self.lease_s} s)' if self.lease_s else ''}{'!' if self.early else ''}"


@dataclass
class Case:
    seed: int
    number: int
    guest: str
    transient: bool
    disk: bool
    hops: list
    struck: int  # the hop to which everything below applies
    policy: str
    patient: bool  # no deadline comes before libvirt's own timeouts
    keeps_source: bool  # undefine_source=no
    link_mbit: int
    forward: bool  # the stream goes through a forwarder that can break it
    moment: str
    offset_ms: int
    faults: list = field(default_factory=list)
    owner: Optional[OwnerPlan] = None

    def struck_policy(self):
        policy = dict(POLICIES[self.policy])
        # For small guests: some twenty seconds, or longer than libvirt waits for anything.
        policy["completion_timeout_s_per_gib"] = 800 if self.patient else 300
        if self.keeps_source:
            policy["undefine_source"] = False
        return policy

    def __str__(self):
        path = " → ".join([self.hops[0].source, *(f"[{hop}]" if i == self.struck else str(hop) for i, hop in enumerate(self.hops))])
        words = [f"{self.guest}{' (transient)' if self.transient else ''}{' with a disk' if self.disk else ''}", self.policy]
        words += ["patient"] * self.patient + ["definition kept"] * self.keeps_source
        words += [f"{self.link_mbit} Mbit/s"] + ["forwarded"] * self.forward
        return (
            f"{path}; {', '.join(words)}; {self.moment} + {self.offset_ms} ms: "
            + ", then ".join(
                str(fault) + (f" {fault.delay_ms / 1000:.1f} s later" if fault.delay_ms else "")
                for fault in self.faults
            )
            + (f"; {self.owner}" if self.owner else "")
        )


def draw_fault(rng, delay_ms, kind, max_length_ms):
    _, low, high = FAULTS[kind]
    # short ones as often as long ones: uniform in the logarithm
    length = int(low * (high / low) ** rng.random()) if low else int(high * rng.random())
    return Fault(kind, delay_ms, min(length, max_length_ms), kind == "link-cut" and rng.random() < 0.6)


def draw_hops(rng):
    """The path: more often to the third node than back."""
    path = [rng.choice(NODES)]
    for _ in range(rng.choices([1, 2, 3], [30, 40, 30])[0]):
        others = [node for node in NODES if node != path[-1]]
        home = path[-2] if len(path) > 1 and rng.random() < 0.25 else None
        path.append(home or rng.choice([node for node in others if node not in path[-2:]]))
    return [
        HopPlan(source, target, rng.choice([4, 20, 60]) if rng.random() < LEASE else 0, rng.random() < 0.5)
        for source, target in zip(path, path[1:])
    ]


def draw_owner(rng):
    return OwnerPlan(
        kind=rng.choices(list(OWNERS), list(OWNERS.values()))[0],
        arrived=rng.random() < 0.4,
        delay_ms=int(rng.random() ** 2 * OWNER_DELAY_MS),
        pause_ms=int(500 + rng.random() * 2000),
        home=rng.random() < 0.3,
        persistent=rng.random() < 0.7,
        writes=rng.random() < 0.5,
    )


def steer(rng, case):
    """Some problems show only in combination, and chance alone would combine them too seldom."""
    hop = case.hops[case.struck]
    kinds = {fault.kind for fault in case.faults}
    # The source is down while the guest goes on from its target.
    if not kinds.isdisjoint({"source-down", "source-libvirtd-kill", "link-cut"}) and rng.random() < 0.7:
        hop.early = True
        if case.moment in ("switchover", "end") and case.struck + 1 == len(case.hops):
            third = next(node for node in NODES if node not in (hop.source, hop.target))
            case.hops.append(HopPlan(hop.target, third, 0, False))
    if case.moment in ("switchover", "end") and case.faults[0].kind == "source-down":
        case.faults[0].length_ms = max(case.faults[0].length_ms, 6000)
    # The target's agent is down while an owner ends what has arrived in its images.
    if case.disk and kinds & {"target-agent-kill", "target-down"}:
        hop.lease_s = hop.lease_s or 20
        if rng.random() < 0.7:
            case.hops = case.hops[: case.struck + 1]
            case.owner = draw_owner(rng)
            case.owner.kind, case.owner.arrived = rng.choice(["destroy", "destroy", "managedsave", "failed-start"]), True
            case.owner.delay_ms //= 4
            for fault in case.faults:
                if fault.kind == "target-agent-kill":
                    fault.length_ms = max(fault.length_ms, 9000)
    # An owner's own migration or save while an agent cannot find out what became of its abort.
    if case.faults[0].kind == "abort" and case.moment in ("prepare", "pre-copy") and rng.random() < 0.6:
        down = draw_fault(rng, 0, rng.choice(["target-down", "target-libvirtd-kill"]), 0)
        down.length_ms = rng.randrange(6000, 9000)
        case.faults = [down, Fault("abort", rng.randrange(50, 500))]
        case.owner = draw_owner(rng)
        case.owner.kind, case.owner.arrived, case.owner.home = rng.choice(["migrate", "migrate", "managedsave"]), False, False
        case.owner.delay_ms = rng.randrange(1000, 3500)


def draw(seed, number, max_length_ms=40000):
    """The case with that number. Any 60 in a row have every first fault at every moment."""
    rng = random.Random(f"{seed}/{number}")
    moment = list(MOMENTS)[number % len(MOMENTS)]
    first = list(FAULTS)[(seed + number) % len(FAULTS)]
    guest, policy = rng.choice(list(GUESTS)), rng.choice(list(POLICIES))
    away = first == "target-agent-kill" and moment in ("prepare", "pre-copy")
    disk = rng.random() < (0.8 if away else DISK) and moment != "post-copy"
    if moment == "post-copy":
        guest, policy = rng.choice(["hopeless", "bursty"]), rng.choice(["post-copy", "all"])
    elif disk and policy in ("post-copy", "all"):
        policy = "pause"  # libvirt does not combine post-copy with copied disks
    elif moment == "switchover" and guest == "hopeless" and policy in ("plain", "limited"):
        policy = "pause"  # otherwise there is no switchover
    faults = [draw_fault(rng, 0, first, max_length_ms)]
    if rng.random() < (0 if away and disk else SECOND_FAULT):
        others = [kind for kind in FAULTS if kind != first]
        second = rng.choices(others, [FAULTS[kind][0] for kind in others])[0]
        # mostly soon, while there is still something to disturb
        faults.append(draw_fault(rng, int(rng.random() ** 2 * SECOND_DELAY_MS), second, max_length_ms))
    hops = draw_hops(rng)
    forward = any(fault.kind == "stream-break" for fault in faults) or rng.random() < (0 if disk else 0.15)
    disk = disk and not forward  # disks have their own connections, to the same address as the memory
    case = Case(
        seed=seed,
        number=number,
        guest=guest,
        transient=rng.random() < 0.15 and not disk,
        disk=disk,
        hops=hops,
        struck=rng.choices(range(len(hops)), [6, 3, 2][: len(hops)])[0],
        policy=policy,
        patient=rng.random() < 0.5,
        keeps_source=rng.random() < KEEPS_SOURCE,
        link_mbit=rng.choice([200, 300, 400]),
        forward=forward,
        moment=moment,
        offset_ms=int(rng.random() * MOMENTS[moment]),
        faults=faults,
        owner=draw_owner(rng) if rng.random() < OWNER else None,
    )
    steer(rng, case)
    return case
