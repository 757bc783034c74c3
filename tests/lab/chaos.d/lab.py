# SPDX-License-Identifier: LGPL-2.1-or-later
"""A lab of one's own, with an agent at node a, for the chaos."""
import json
import os
import shutil
import socket
import subprocess
import threading
import time

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BUILD = os.path.join(HOME, "..", "..", "build")
TARGET_URI = "qemu+tcp://10.77.0.2/system"


class VarlinkError(Exception):
    """An error of the interface; its name is the text."""


class Lab:
    def __init__(self, directory):
        self.directory = directory
        self.environment = dict(os.environ, LAB_DIR=directory)
        self.agent = None
        self.agent_lock = threading.Lock()
        self.agent_directory = os.path.join(directory, "agent-a")
        self.handoffd = os.environ.get("HANDOFFD", os.path.join(BUILD, "agent", "handoffd"))

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

    def up(self):
        self.run("up", "--owner", str(os.getpid()), timeout=180)
        os.makedirs(self.agent_directory, exist_ok=True)
        with open(os.path.join(self.agent_directory, "conf"), "w", encoding="utf-8") as file:
            file.write("[Agent]\nPollInterval=200ms\n")

    def down(self):
        with self.agent_lock:
            self.agent_end()
        self.run("down", check=False, timeout=180)

    # --- the agent ---

    def agent_start(self):
        """With the lock held."""
        with open(os.path.join(self.agent_directory, "log"), "ab") as log:
            self.agent = subprocess.Popen(  # pylint: disable=consider-using-with
                [
                    *(os.path.join(HOME, "lab"), "exec", "a", self.handoffd),
                    *("--config", os.path.join(self.agent_directory, "conf")),
                    *("--socket", os.path.join(self.agent_directory, "socket")),
                    *("--state-dir", os.path.join(self.agent_directory, "state")),
                ],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def agent_end(self):
        """By SIGKILL, with the lock held."""
        if self.agent:
            self.agent.kill()
            self.agent.wait()
            self.agent = None

    def agent_end_status(self):
        """None: it lives, as it should. Negative: the signal that ended it."""
        with self.agent_lock:
            return self.agent.poll() if self.agent else None

    def agent_forget(self):
        """A fresh agent: no jobs, no log."""
        with self.agent_lock:
            self.agent_end()
            shutil.rmtree(os.path.join(self.agent_directory, "state"), ignore_errors=True)
            open(os.path.join(self.agent_directory, "log"), "wb").close()
            self.agent_start()

    def call(self, method, timeout=5, **parameters):
        """One call of io.handoffd.Agent. OSError: the agent does not answer."""
        message = {"method": f"io.handoffd.Agent.{method}", "parameters": parameters}
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(timeout)
            sock.connect(os.path.join(self.agent_directory, "socket"))
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

    def wait_for(self, seconds, condition, what):
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise RuntimeError(f"waited {seconds} s in vain for: {what}")
            time.sleep(0.05)

    def agent_ready(self):
        try:
            return self.call("GetNode")["libvirt_reachable"]
        except (OSError, VarlinkError, KeyError):
            return False

    # --- the nodes ---

    def restart_libvirtd(self, node):
        self.run("libvirtd", node, "start")

    def qemu_processes(self, node):
        """Command lines of the QEMUs on a node, but not those that libvirt probes capabilities with."""
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

    def domains(self, node):
        """name: state, of all that the node's libvirtd knows."""
        domains = {}
        for name in self.run("virsh", node, "-q", "list", "--all", "--name").split():
            domains[name] = self.run("virsh", node, "-q", "domstate", "--reason", name, check=False).strip() or "absent"
        return domains

    def serial_size(self, guest):
        try:
            return os.stat(os.path.join(self.directory, "guests", guest, "serial")).st_size
        except FileNotFoundError:
            return 0

    def clean(self, guest):
        """As if nothing had been: both libvirtds up, no guest, the link whole."""
        self.run("heal", check=False)
        for node in "ab":
            self.run("libvirtd", node, "resume", check=False)
            if not self.run("virsh", node, "-q", "list", check=False, timeout=20) and not self.answers(node):
                self.run("libvirtd", node, "kill", check=False)
                self.restart_libvirtd(node)
        self.run("guest-rm", guest, check=False)
        for node in "ab":
            if self.qemu_processes(node):
                self.run("exec", node, "pkill", "-KILL", "qemu-system", check=False)
            for name in self.domains(node):
                self.run("virsh", node, "-q", "destroy", name, check=False)
                self.run("virsh", node, "-q", "undefine", name, check=False)

    def answers(self, node):
        return "answers" in next(
            (line for line in self.run("status").splitlines() if line.startswith(f"node {node} ")), ""
        )

    def keep(self, directory):
        """Copies all logs."""
        os.makedirs(directory, exist_ok=True)
        shutil.copytree(self.agent_directory, os.path.join(directory, "agent-a"), dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("socket"))
        for node in "ab":
            into = os.path.join(directory, f"node-{node}")
            shutil.copytree(os.path.join(self.directory, f"node-{node}", "log-libvirt"), into, dirs_exist_ok=True)
            for name in ("libvirtd.out", "forward.log"):
                path = os.path.join(self.directory, f"node-{node}", name)
                if os.path.exists(path):
                    shutil.copy(path, into)
        for name in ("recorder.log",):
            if os.path.exists(os.path.join(self.directory, name)):
                shutil.copy(os.path.join(self.directory, name), directory)
        shutil.copytree(os.path.join(self.directory, "guests"), os.path.join(directory, "guests"), dirs_exist_ok=True)
