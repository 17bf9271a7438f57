# SPDX-License-Identifier: Apache-2.0
"""berthd beside the cluster: one tick of it, or a daemon on a message bus of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

from .groups import Groups, v2_root
from .sparkd import Sparkd
from .waiting import PATIENCE_S, until

CONFIG = f"""[sampling]
interval = 0.5
[spark]
interval = 1.0
[[workload]]
match = "{Groups.NAME}/*"
class = "best-effort"
"""
BUS = """<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>"""


def config_file(directory: Path, text: str = CONFIG) -> Path:
    path = directory / "berth.toml"
    path.write_text(text)
    return path


def own_dirs(directory: Path) -> list[str]:
    for name in ("state", "run"):
        (directory / name).mkdir(exist_ok=True)
    return ["--state-dir", str(directory / "state"), "--runtime-dir", str(directory / "run")]


def berthd_once(build: Path, directory: Path) -> dict:
    """The plan of `berthd --once --json`; an AssertionError where it does not end well, or soon."""
    sparkd = Sparkd(build)
    command = [
        *[str(build / "daemon" / "berthd"), "--once", "--json", "--config", str(config_file(directory)), *own_dirs(directory)],
        *["--sparkd-socket", str(sparkd.path)],
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    finally:
        sparkd.stop()
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout)


def with_cpuset(directory: Path) -> list[str]:
    """What berthd is started by where it is to enforce: it wants a cpuset controller, though nothing is pinned here. On a host whose
    controllers are all on v1 it is shown one, in a mount namespace of its own."""
    controllers = v2_root() / "cgroup.controllers"
    if "cpuset" in controllers.read_text().split():
        return []
    shown = directory / "cgroup.controllers"
    shown.write_text(f"cpuset {controllers.read_text()}")
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(shown), str(controllers)]


def received(datagrams: socket.socket) -> bytes:
    """The next datagram; empty if there is none yet."""
    try:
        return datagrams.recv(4096)
    except BlockingIOError:
        return b""


class Berthd:
    """A daemon that observes, or with `enforce` also evicts, and berthctl that talks to it."""

    def __init__(self, build: Path, directory: Path, config: str = CONFIG, enforce: bool = False) -> None:
        self.build, self.directory = build, directory
        bus = directory / "bus"
        (directory / "bus.conf").write_text(BUS.format(path=bus))
        self.bus = subprocess.Popen(
            ["dbus-daemon", "--config-file", str(directory / "bus.conf"), "--nofork", "--nopidfile"], stderr=subprocess.DEVNULL
        )
        until("the bus listens", bus.exists, every=0.02)
        self.sparkd = Sparkd(build)
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(str(directory / "notify"))
        notify.setblocking(False)
        self.environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={bus}"}
        self.log = directory / "berthd.log"
        config = str(config_file(directory, 'mode = "enforce"\n' + config if enforce else config))
        mode = with_cpuset(directory) if enforce else []
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*mode, str(build / "daemon" / "berthd"), *([] if enforce else ["--observe"]), "--config", config, *own_dirs(directory),
                 "--sparkd-socket", str(self.sparkd.path)],
                env={**self.environment, "NOTIFY_SOCKET": str(directory / "notify")}, stdout=log, stderr=log,
            )
        try:
            until("berthd is ready, or ends", lambda: self.process.poll() is not None or b"READY=1" in received(notify))
            assert self.process.poll() is None, f"berthd ended: {self.process.returncode}\n{self.log.read_text()[-3000:]}"
        except BaseException:  # whoever is interrupted here leaves nothing behind
            for process in (self.process, self.bus):
                process.kill()
                process.wait()
            self.sparkd.stop()
            raise
        finally:
            notify.close()

    def steps(self, workload: str) -> list[str]:
        """Of its eviction, oldest first."""
        entries = json.loads(self.ctl("log", "-n", "1000", "--json"))["entries"]
        return [
            f"{entry['attribute']} {entry['result']}"
            for entry in reversed(entries)
            if entry["kind"] == "evict" and entry["workload"] == workload
        ]

    def ctl(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.build / "cli" / "berthctl"), *arguments], env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, f"berthctl {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}"
        return done.stdout

    def spark(self) -> dict:
        """What `berthctl list --spark` has to say."""
        return json.loads(self.ctl("list", "--spark", "--json"))["spark"]

    def answers_in(self) -> float:
        """Seconds that a question takes."""
        begun = time.monotonic()
        self.ctl("status", "--json")
        return time.monotonic() - begun

    def stop(self) -> None:
        """Ends it as the service manager does; an AssertionError where it had ended by itself, or failed."""
        try:
            assert self.process.poll() is None, f"berthd ended by itself: {self.process.returncode}\n{self.log.read_text()[-3000:]}"
            self.process.terminate()
            assert self.process.wait(timeout=PATIENCE_S) == 0, self.log.read_text()[-3000:]
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.bus.terminate()
            self.bus.wait()
            self.sparkd.stop()
