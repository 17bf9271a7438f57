# SPDX-License-Identifier: Apache-2.0
"""A farm of real Slurm daemons on one host. It lives in namespaces of its own (see run): its files are in memory file systems that hide
the host's directories, and all its processes end with the first one."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import berthstate
from waiting import PATIENCE_S, until

# What slurm.conf has of the resource; nothing above it can be published.
CONFIGURED = 16
RUN = Path("/run/farm")
FLEET = Path("/run/berth-fleet")
PROGRAMS = ("slurmctld", "slurmd", "scontrol", "sbatch", "munged", "ip")
# The outer world's directories that the farm writes to.
OWN = ("/run", "/var/spool", "/var/log", "/var/lib/munge", "/etc/slurm", "/etc/munge")


def missing() -> str | None:
    """Why the farm cannot be on this machine."""
    if "BERTH_FARM" not in os.environ:
        return "needs root, and may not make namespaces here"
    lacking = [name for name in PROGRAMS if not shutil.which(name)]
    return f"there is no {', '.join(lacking)}" if lacking else None


def logs() -> str:
    """The ends of all logs of the farm."""
    files = sorted(Path("/var/log").glob("slurm*"))
    return "\n".join(f"== {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-15:]) for log in files)


def call(*words: str, check: bool = True, **more: Any) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, **more)
    assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def enter_namespaces() -> None:
    """Names this host, gives it an address that is not the loopback's, and hides the directories that the farm writes to."""
    call("hostname", "ctl")
    call("mount", "--make-rprivate", "/")
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "farm0", "type", "veth", "peer", "name", "farm1")
    call("ip", "address", "add", "10.77.0.1/24", "dev", "farm0")
    for link in ("farm0", "farm1"):
        call("ip", "link", "set", link, "up")
    for directory in OWN:
        Path(directory).mkdir(exist_ok=True)
        call("mount", "-t", "tmpfs", "tmpfs", directory)
    RUN.mkdir()
    FLEET.mkdir()
    hosts = RUN / "hosts"
    hosts.write_text("127.0.0.1 localhost\n10.77.0.1 ctl\n")
    call("mount", "--bind", str(hosts), "/etc/hosts")


def slurm_conf(nodes: list[str], version: tuple[int, int], health_check_s: int) -> str:
    lines = [
        "ClusterName=berth",
        "SlurmctldHost=ctl(127.0.0.1)",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        "StateSaveLocation=/var/spool/slurmctld",
        "SlurmdSpoolDir=/var/spool/slurmd/%n",
        "SlurmdPidFile=/run/slurmd-%n.pid",
        "SlurmctldPidFile=/run/slurmctld.pid",
        "SlurmctldLogFile=/var/log/slurmctld.log",
        "SlurmdLogFile=/var/log/slurmd-%n.log",
        "SlurmdParameters=config_overrides",
        "ProctrackType=proctrack/pgid",
        "TaskPlugin=task/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "DefMemPerCPU=100",
        "MpiDefault=none",
        "GresTypes=gpu,becpu",
        "SchedulerParameters=sched_interval=2,bf_interval=2",
        "ReturnToService=2",
        "JobSubmitPlugins=lua",
        f"HealthCheckProgram={RUN}/health",
        f"HealthCheckInterval={health_check_s}",
        "HealthCheckNodeState=ANY",
    ]
    # Later versions take one plugin for both, and refuse the old name.
    if version < (23, 2):
        lines.append("CryptoType=crypto/munge")
    for number, node in enumerate(nodes):
        gres = f"gpu:2,becpu:{CONFIGURED}" if number < 2 else f"becpu:{CONFIGURED}"
        lines.append(
            f"NodeName={node} NodeHostname=ctl NodeAddr=127.0.0.1 Port={17001 + number} CPUs=8 Sockets=1 CoresPerSocket=4 "
            f"ThreadsPerCore=2 RealMemory=2000 Gres={gres}" + (f" Feature=gpus,{node}" if number else "")
        )
    lines.append("PartitionName=all Nodes=ALL Default=YES State=UP")
    # Jobs share cores there, so that the resource alone says how many run.
    lines.append("PartitionName=shared Nodes=ALL State=UP OverSubscribe=FORCE:4")
    return "\n".join(lines) + "\n"


class Farm:
    """munged, slurmctld, and one slurmd a node. The state of each node's berthd is a file that a test writes, until a berthd does."""

    def __init__(self, build: Path, job_submit: Path, nodes: list[str], health_check_s: int = 2) -> None:
        self.nodes = nodes
        self.berth_slurm = build / "integrations/slurm/berth-slurm"
        self.environment = dict(os.environ, PATH=f"{build / 'cli'}:/usr/sbin:/usr/bin:/sbin:/bin")
        self.jobs = 0
        words = call("slurmctld", "-V").split()[-1].split(".")
        self.version = (int(words[0]), int(words[1]))
        self._configure(job_submit, health_check_s)
        self._start_munge()
        self.controller = self._start("slurmctld", "-D")
        self.daemons = {node: self._start("slurmd", "-D", "-N", node) for node in nodes}
        until(self.idle, "idle farm")

    def _configure(self, job_submit: Path, health_check_s: int) -> None:
        etc = Path("/etc/slurm")
        (etc / "slurm.conf").write_text(slurm_conf(self.nodes, self.version, health_check_s))
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if self.version >= (23, 11) else "")
        for number in range(2):
            (RUN / f"gpu{number}").touch()
        (etc / "gres.conf").write_text(f"NodeName={self.nodes[0]},{self.nodes[1]} Name=gpu File={RUN}/gpu[0-1]\n")
        shutil.copy(job_submit, etc / "job_submit.lua")
        Path("/var/spool/slurmctld").mkdir()
        for node in self.nodes:
            (Path("/var/spool/slurmd") / node).mkdir(parents=True)
            (RUN / node).mkdir()
            self.say(node)
        self.set_options()
        # A site's own script: it gives options, and ends with berth-slurm.
        health = RUN / "health"
        health.write_text(
            f"#!/bin/sh\nexec {self.berth_slurm} --state {RUN}/$SLURMD_NODENAME/state.json $(cat {RUN}/options) >>{RUN}/$SLURMD_NODENAME/said 2>&1\n"
        )
        health.chmod(0o755)

    def _start_munge(self) -> None:
        key = Path("/etc/munge/munge.key")
        key.write_bytes(secrets.token_bytes(1024))
        for directory in ("/run/munge", "/var/log/munge", "/var/lib/munge", "/etc/munge"):
            Path(directory).mkdir(exist_ok=True)
            shutil.chown(directory, "munge", "munge")
            Path(directory).chmod(0o755 if directory == "/run/munge" else 0o700)
        shutil.chown(key, "munge", "munge")
        key.chmod(0o400)
        self._start("setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups", "munged", "--foreground")
        until(Path("/run/munge/munge.socket.2").exists, "munged")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        log = Path("/var/log") / f"{words[0]}-{words[-1].lstrip('-')}.out"
        with log.open("ab") as out:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment)

    def kill_controller(self, job: Job) -> None:
        """Kills it without warning, once it has saved what it knows now, `job` too: it saves every few seconds what has changed."""

        def saved_s() -> float:
            try:
                return Path("/var/spool/slurmctld/job_state").stat().st_mtime
            except FileNotFoundError:  # For a moment there is none: it removes the old file before it links the new one.
                return 0.0

        # A save that ends after now may have begun before, so the second one counts.
        for number in range(2):
            now = time.time()
            call("scontrol", "update", f"jobid={job.number}", f"comment=save {number}")
            until(lambda: saved_s() > now, "saved state")
        self.controller.kill()
        self.controller.wait()

    def restart_controller(self) -> None:
        self.controller = self._start("slurmctld", "-D")

    def restart_daemon(self, node: str) -> None:
        self.daemons[node].kill()
        self.daemons[node].wait()
        self.daemons[node] = self._start("slurmd", "-D", "-N", node)

    def records(self) -> list[dict[str, str]]:
        """The figures of all nodes, by one call."""
        shown = call("scontrol", "show", "node", "--oneliner", check=False).splitlines()
        return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in shown if line.startswith("NodeName=")]

    def idle(self) -> bool:
        return [record["State"] for record in self.records()] == ["IDLE"] * len(self.nodes)

    # The nodes' berthd.

    def set_options(self, options: str = "--max-age 86400") -> None:
        (RUN / "options").write_text(options)

    def state_file(self, node: str) -> Path:
        return RUN / node / "state.json"

    def say(self, node: str, **figures: Any) -> None:
        berthstate.say(self.state_file(node), node, **figures)

    def would(self, node: str) -> str:
        """What a run would change now."""
        options = (RUN / "options").read_text().split()
        return call(str(self.berth_slurm), "--node", node, "--state", str(self.state_file(node)), "--dry-run", *options)

    def published(self) -> None:
        """Waits until Slurm has what every node's berthd says."""
        until(lambda: all(self.would(node) == "" for node in self.nodes), "publication")

    # Slurm.

    def show(self, node: str) -> str:
        return call("scontrol", "show", "node", node, check=False)

    def field(self, node: str, name: str) -> str:
        for line in self.show(node).splitlines():
            if name in ("Reason", "Extra", "Gres") and line.strip().startswith(name + "="):
                return line.strip().split("=", 1)[1]
            for word in line.split():
                if word.startswith(name + "="):
                    return word.split("=", 1)[1]
        return ""

    def update(self, node: str, *words: str) -> None:
        call("scontrol", "update", f"nodename={node}", *words)

    def becpu(self, node: str) -> int:
        for entry in self.field(node, "Gres").split(","):
            if entry.startswith("becpu:"):
                return int(entry.split(":")[1])
        # Slurm shows no resource of which there are 0.
        return 0

    def drained(self, node: str) -> bool:
        return "DRAIN" in self.field(node, "State").split("+")

    def submit(self, *options: str, script: str = "true") -> Job:
        self.jobs += 1
        output = RUN / f"job-{self.jobs}"
        said = call("sbatch", "--parsable", "-o", str(output), *options, "--wrap", f"echo $SLURMD_NODENAME; {script}", cwd="/", env=self.environment)
        return Job(said.strip().splitlines()[-1], output)


class Job:
    def __init__(self, number: str, output: Path) -> None:
        self.number = number
        self.output = output

    def state(self) -> str:
        for word in call("scontrol", "show", "job", self.number).split():
            if word.startswith("JobState="):
                return word.split("=")[1]
        return ""

    def ran_on(self) -> str:
        """Waits for its end. Returns the node that its own output names."""
        until(lambda: self.state() == "COMPLETED", f"end of job {self.number}")
        return self.output.read_text().strip()

    def runs(self) -> None:
        until(lambda: self.state() == "RUNNING", f"start of job {self.number}")

    def waits(self) -> None:
        """It has been considered by the scheduler, and left waiting."""
        until(lambda: self.state() == "PENDING" and "Reason=None" not in call("scontrol", "show", "job", self.number), f"waiting of job {self.number}")
