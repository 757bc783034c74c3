# SPDX-License-Identifier: LGPL-2.1-or-later
"""What one move of the chaos is to be: all of it drawn from a seed and the number of the case."""
import random
from dataclasses import dataclass, field

# name: memory in MiB, phases as of `lab guest --phases`
GUESTS = {
    "idle": (128, "0/0"),
    "light": (128, "32/20"),
    "medium": (160, "64/30"),
    "near": (160, "100/40"),
    "hopeless": (160, "100/200"),
    "bursty": (160, "80/10:2,80/150:2"),
}

POLICIES = {
    "plain": {},
    "post-copy": {"allow_post_copy": True},
    "pause": {"max_pause_ms": 5000},
    "auto-converge": {"allow_auto_converge": True, "max_pause_ms": 2000},
    "all": {"allow_post_copy": True, "allow_auto_converge": True, "max_pause_ms": 3000},
    "limited": {"bandwidth_bytes_per_s": 24 << 20},
}

# When the first fault strikes: the condition, and up to how many ms after it was seen.
MOMENTS = {
    "prepare": 500,
    "pre-copy": 2000,
    "switchover": 120,
    "post-copy": 2500,
    "end": 300,
}

# fault: weight as a second one, shortest and longest time in ms until it is undone (0, 0: nothing to undo)
FAULTS = {
    "agent-kill": (5, 0, 5000),
    "source-libvirtd-kill": (3, 200, 5000),
    "target-libvirtd-kill": (3, 200, 5000),
    "source-libvirtd-stop": (2, 500, 20000),
    "target-libvirtd-stop": (2, 500, 20000),
    "link-cut": (5, 1000, 60000),
    "stream-break": (4, 0, 0),
    "abort": (2, 0, 0),
    "target-qemu-kill": (2, 0, 0),
}

SECOND_FAULT = 0.45  # how often there is one
SECOND_DELAY_MS = 6000


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
class Case:
    seed: int
    number: int
    guest: str
    transient: bool
    policy: str
    patient: bool  # no deadline comes before libvirt's own timeouts
    link_mbit: int
    forward: bool  # the stream goes through a forwarder that can break it
    moment: str
    offset_ms: int
    faults: list = field(default_factory=list)

    def __str__(self):
        return (
            f"{self.guest}{' (transient)' if self.transient else ''}, {self.policy}{', patient' if self.patient else ''}, {self.link_mbit} Mbit/s"
            f"{', forwarded' if self.forward else ''}; {self.moment} + {self.offset_ms} ms: "
            + ", then ".join(
                str(fault) + (f" {fault.delay_ms / 1000:.1f} s later" if fault.delay_ms else "")
                for fault in self.faults
            )
        )


def draw_fault(rng, delay_ms, kind, max_length_ms):
    _, low, high = FAULTS[kind]
    # as many short ones as long ones: the logarithm is even
    length = int(low * (high / low) ** rng.random()) if low else int(high * rng.random())
    return Fault(kind, delay_ms, min(length, max_length_ms), kind == "link-cut" and rng.random() < 0.6)


def draw(seed, number, max_length_ms=60000):
    """The case of that number. Each 45 in a row have every first fault in every moment."""
    rng = random.Random(f"{seed}/{number}")
    moment = list(MOMENTS)[number % len(MOMENTS)]
    first = list(FAULTS)[(seed + number) % len(FAULTS)]
    guest, policy = rng.choice(list(GUESTS)), rng.choice(list(POLICIES))
    if moment == "post-copy":
        guest, policy = rng.choice(["hopeless", "bursty"]), rng.choice(["post-copy", "all"])
    elif moment == "switchover" and guest == "hopeless" and policy in ("plain", "limited"):
        policy = "pause"  # else there is none
    faults = [draw_fault(rng, 0, first, max_length_ms)]
    if rng.random() < SECOND_FAULT:
        others = [kind for kind in FAULTS if kind != first]
        second = rng.choices(others, [FAULTS[kind][0] for kind in others])[0]
        # mostly soon, while there is still something to hit
        faults.append(draw_fault(rng, int(rng.random() ** 2 * SECOND_DELAY_MS), second, max_length_ms))
    return Case(
        seed=seed,
        number=number,
        guest=guest,
        transient=rng.random() < 0.2,
        policy=policy,
        patient=rng.random() < 0.5,
        link_mbit=rng.choice([200, 300, 400]),
        forward=any(fault.kind == "stream-break" for fault in faults) or rng.random() < 0.2,
        moment=moment,
        offset_ms=int(rng.random() * MOMENTS[moment]),
        faults=faults,
    )
