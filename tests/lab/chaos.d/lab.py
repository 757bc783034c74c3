# SPDX-License-Identifier: LGPL-2.1-or-later
"""A lab for the chaos, with an agent on each node."""
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

import calls
from case import NODES
from watch import Watcher, read

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.path.join(HOME, "..", "..", "build")
GUEST = "chaos"
IMAGES = "/var/lib/libvirt/images"  # each node has its own
IMAGE_BYTES = 4 << 20


class VarlinkError(Exception):
    """An error of the interface; its name is the text."""


def address(node):
    return f"10.77.0.{NODES.index(node) + 1}"


def uri(node):
    """The node's URI for its peers."""
    return f"qemu+tcp://{address(node)}/system"


class Agent:
    """handoffd on one node."""

    def __init__(self, lab, node):
        self.lab, self.node = lab, node
        self.directory = os.path.join(lab.directory, f"agent-{node}")
        self.process = None
        self.lock = threading.Lock()

    def configure(self):
        os.makedirs(self.directory, exist_ok=True)
        with open(os.path.join(self.directory, "conf"), "w", encoding="utf-8") as file:
            file.write(
                "[Agent]\nPollInterval=200ms\nUnschedulableTimeout=8s\nMaxIncoming=4\n"
                f"IncomingURI={uri(self.node)}\nIncomingMigrateURI=tcp://{address(self.node)}\n"
            )

    def start(self):
        """Call it with the lock held."""
        with open(os.path.join(self.directory, "log"), "ab") as log:
            self.process = subprocess.Popen(  # pylint: disable=consider-using-with
                [
                    *(os.path.join(HOME, "lab"), "exec", self.node, self.lab.handoffd),
                    *("--config", os.path.join(self.directory, "conf")),
                    *("--socket", os.path.join(self.directory, "socket")),
                    *("--state-dir", os.path.join(self.directory, "state")),
                ],
                env=self.lab.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def end(self):
        """By SIGKILL, with the lock held. The agent is a child of the process that we started, and dies after it."""
        if not self.process:
            return
        pid = self.process.pid
        children = read(f"/proc/{pid}/task/{pid}/children").split()
        self.process.kill()
        self.process.wait()
        self.process = None
        # A zombie holds nothing any more.
        self.lab.wait_for(10, lambda: all(") Z " in read(f"/proc/{child}/stat") or not read(f"/proc/{child}/stat") for child in children),
                          "the agent's end")

    def end_status(self):
        """None: it is alive, as it should be. Negative: the signal that ended it."""
        with self.lock:
            return self.process.poll() if self.process else None

    def forget(self):
        """A fresh agent: no jobs, no log."""
        with self.lock:
            self.end()
            shutil.rmtree(os.path.join(self.directory, "state"), ignore_errors=True)
            with open(os.path.join(self.directory, "log"), "wb"):
                pass
            self.start()

    def call(self, method, timeout=5, **parameters):
        """One call of io.handoffd.Agent. OSError: the agent does not answer."""
        message = {"method": f"io.handoffd.Agent.{method}", "parameters": parameters}
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout)
            sock.connect(os.path.join(self.directory, "socket"))
            sock.sendall(json.dumps(message).encode() + b"\0")
            answer = b""
            while not answer.endswith(b"\0"):
                data = sock.recv(65536)
                if not data:
                    raise ConnectionError("the agent closed the connection")
                answer += data
        reply = json.loads(answer[:-1])
        if "error" in reply:
            raise VarlinkError(f"{reply['error'].rpartition('.')[2]} {json.dumps(reply.get('parameters'))}")
        return reply["parameters"]

    def ready(self):
        try:
            return self.call("GetNode")["libvirt_reachable"]
        except (OSError, VarlinkError, KeyError):
            return False

    def jobs(self):
        """All the jobs that it keeps, in full."""
        return [self.call("Get", job=job["id"])["job"] for job in self.call("List")["jobs"]]


class Lab:
    def __init__(self, directory):
        self.directory = directory
        self.environment = dict(os.environ, LAB_DIR=directory)
        self.handoffd = os.environ.get("HANDOFFD", os.path.join(BUILD, "agent", "handoffd"))
        self.agents = {node: Agent(self, node) for node in NODES}
        self.libvirtd_locks = {node: threading.Lock() for node in NODES}
        self.watcher = None

    def run(self, *arguments, check=True, timeout=90):
        """Runs a verb of `lab`; returns what it printed."""
        done = subprocess.run(
            [os.path.join(HOME, "lab"), *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            raise RuntimeError(f"lab {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def virsh(self, node, *arguments, timeout=10):
        """(did it work, what it said)"""
        socket_path = os.path.join(self.path(node), "run", "libvirt", "libvirt-sock")
        try:
            done = subprocess.run(
                ["virsh", "-q", "-c", f"qemu+unix:///system?socket={socket_path}", *arguments],
                env=dict(os.environ, LC_ALL="C"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=timeout,
                check=False,
                start_new_session=True,  # otherwise it looks for a terminal to ask for passwords
            )
        except subprocess.TimeoutExpired:
            return False, f"no answer within {timeout} s"
        return done.returncode == 0, done.stdout.strip()

    def path(self, node):
        return os.path.join(self.directory, f"node-{node}")

    def up(self):
        self.run("up", "--nodes", str(len(NODES)), "--owner", str(os.getpid()), timeout=180)
        for node in NODES:
            self.agents[node].configure()
            self.log_calls(node)
            os.makedirs(os.path.dirname(self.image(node)), exist_ok=True)
            for verb in (("pool-define-as", "images", "dir", "--target", IMAGES), ("pool-autostart", "images"), ("pool-start", "images")):
                done, said = self.virsh(node, *verb)
                if not done:
                    raise RuntimeError(f"virsh {' '.join(verb)}: {said}")
        self.watcher = Watcher(self.directory, NODES, GUEST)
        self.watcher.start()

    def log_calls(self, node):
        """Makes its libvirtd log the calls that it gets."""
        path = os.path.join(self.path(node), "etc-libvirt", "libvirtd.conf")
        with open(path, encoding="utf-8") as file:
            lines = file.readlines()
        lines = [re.sub(r'^log_outputs = "3:', 'log_outputs = "1:', line) for line in lines]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines([*lines, f'log_filters = "{calls.LOGGED}"\n'])
        self.run("libvirtd", node, "stop")
        self.run("libvirtd", node, "start")

    def down(self):
        if self.watcher:
            self.watcher.stop()
        for agent in self.agents.values():
            with agent.lock:
                agent.end()
        self.run("down", check=False, timeout=180)

    def agents_forget(self):
        for agent in self.agents.values():
            agent.forget()

    def agents_ready(self):
        return all(agent.ready() for agent in self.agents.values())

    def wait_for(self, seconds, condition, what):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise RuntimeError(f"waited {seconds} s in vain for: {what}")
            time.sleep(0.05)

    # --- the nodes ---

    def qemu_processes(self, node):
        """Command lines of the QEMUs on a node, except those that libvirt uses to probe capabilities."""
        found = self.run("exec", node, "pgrep", "-a", "qemu-system", check=False).splitlines()
        return [line for line in found if "-name guest=" in line]

    def qemu_threads(self, node):
        """Names of the threads of a node's QEMUs."""
        pids = [line.split()[0] for line in self.qemu_processes(node)]
        return set(
            name
            for pid in pids
            for name in self.run("exec", node, "sh", "-c", f"cat /proc/{pid}/task/*/comm", check=False).splitlines()
        )

    def state(self, node):
        """The guest's state there: libvirt's word and reason, or "absent", or "unknown (…)"."""
        done, said = self.virsh(node, "domstate", "--reason", GUEST)
        if done:
            return said.splitlines()[0] if said else "unknown"
        return "absent" if "failed to get domain" in said or "Domain not found" in said else f"unknown ({said})"

    def states(self):
        return {node: self.state(node) for node in NODES}

    def serial_size(self):
        try:
            return os.stat(os.path.join(self.directory, "guests", GUEST, "serial")).st_size
        except FileNotFoundError:
            return 0

    # --- the disk ---

    def image(self, node):
        return os.path.join(self.path(node), "lib-libvirt", "images", f"{GUEST}.img")

    def write_image(self, node):
        """Writes new content, into the existing file if there is one; returns its checksum."""
        data = os.urandom(IMAGE_BYTES)
        with open(self.image(node), "r+b" if os.path.exists(self.image(node)) else "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return hashlib.sha256(data).hexdigest()

    def empty_image(self, node):
        """Creates one of the right size if there is none: one that an agent has made is not touched."""
        if not os.path.exists(self.image(node)):
            with open(self.image(node), "wb") as file:
                file.truncate(IMAGE_BYTES)

    def checksum(self, node):
        """Empty: there is none."""
        try:
            with open(self.image(node), "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        except FileNotFoundError:
            return ""

    # --- between two cases ---

    def answers(self, node):
        return self.virsh(node, "list", "--name", timeout=5)[0]

    def clean(self):
        """A clean slate: all libvirtds up, no guest, no image, all links up."""
        self.run("heal", check=False)
        for node in NODES:
            self.run("libvirtd", node, "resume", check=False)
            if not self.answers(node) and not self.answers(node):
                self.run("libvirtd", node, "kill", check=False)
                self.run("libvirtd", node, "start")
            for verb in ("destroy", "managedsave-remove", "undefine"):
                self.virsh(node, verb, GUEST)
            if self.state(node) != "absent":
                self.forget_domain(node)
            if self.qemu_processes(node):
                self.run("exec", node, "pkill", "-KILL", "qemu-system", check=False)
            for path in (self.image(node), self.log_path(node)):
                if os.path.exists(path):
                    os.unlink(path)
            with open(calls.log_path(self.directory, node), "r+b") as file:
                file.truncate(0)
        self.run("guest-rm", GUEST, check=False)

    def forget_domain(self, node):
        """A libvirtd that was killed while it started a QEMU shows a domain that cannot be destroyed (see known-faults)."""
        self.run("libvirtd", node, "kill", check=False)
        path = os.path.join(self.path(node), "run", "libvirt", "qemu", f"{GUEST}.xml")
        if os.path.exists(path):
            os.unlink(path)
        self.run("libvirtd", node, "start")

    def log_path(self, node):
        return os.path.join(self.path(node), "log-libvirt", "qemu", f"{GUEST}.log")

    def log(self, node):
        """The log of QEMU, and of libvirt about it, for the guest there."""
        try:
            with open(self.log_path(node), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def keep(self, directory):
        """Copies all logs."""
        os.makedirs(directory, exist_ok=True)
        for agent in self.agents.values():
            shutil.copytree(agent.directory, os.path.join(directory, f"agent-{agent.node}"), dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("socket"))
        for node in NODES:
            into = os.path.join(directory, f"node-{node}")
            shutil.copytree(os.path.join(self.path(node), "log-libvirt"), into, dirs_exist_ok=True)
            for name in ("libvirtd.out", "forward.log"):
                path = os.path.join(self.path(node), name)
                if os.path.exists(path):
                    shutil.copy(path, into)
        for name in ("recorder.log",):
            if os.path.exists(os.path.join(self.directory, name)):
                shutil.copy(os.path.join(self.directory, name), directory)
        shutil.copytree(os.path.join(self.directory, "guests"), os.path.join(directory, "guests"), dirs_exist_ok=True)
