# SPDX-License-Identifier: Apache-2.0
"""A real berthd on a host of files and on a bus of its own, for the commands that need no booted host."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from fakehost import FakeHost
from privatebus import PrivateBus

PATIENCE_S = float(os.environ.get("BERTH_DOCS_PATIENCE", "60"))
COMMAND_TIMEOUT_S = 120
FAST = '[sampling]\ninterval = "200ms"\nmax_cpu = 1\n'


class FileHost:
    def __init__(self, root: Path, berthctl: Path, berthd: Path, configuration: str) -> None:
        self.root, self.runtime = root, root / "run"
        self.files = FakeHost(root / "host", self.runtime, caches=2)
        self.configuration = root / "host/berth.toml"
        self.configure(configuration)
        self.programs = root / "bin"
        self.programs.mkdir()
        for program in (berthctl, berthd):
            (self.programs / program.name).symlink_to(program)
        self.bus: PrivateBus | None = None
        self.processes: list[subprocess.Popen[bytes]] = []

    def configure(self, text: str) -> None:
        self.configuration.write_text(text + FAST)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.programs}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        return {**os.environ, "PATH": path, "DBUS_SYSTEM_BUS_ADDRESS": self.bus.address if self.bus else "", "LC_ALL": "C.UTF-8"}

    def start(self) -> None:
        self.bus = PrivateBus(self.root)
        words = ["berthd", "--config", str(self.configuration), "--runtime-dir", str(self.runtime)]
        for option, directory in (("cgroup-root", "cgroup"), ("proc-root", "proc"), ("sys-root", "sys"), ("state-dir", "state")):
            words += [f"--{option}", str(self.root / "host" / directory)]
        self._spawn(*words)
        self.wait_until(lambda: self.run("berthctl status").returncode == 0, "berthd to answer")

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", script], text=True, errors="replace", capture_output=True, check=False, cwd=self.root,
            stdin=subprocess.DEVNULL, env=self.environment, timeout=COMMAND_TIMEOUT_S,
        )  # fmt: skip

    def wait_for(self, script: str, what: str) -> None:
        self.wait_until(lambda: self.run(script).returncode == 0, what)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            process.wait()
        if self.bus:
            self.bus.stop()

    def _spawn(self, *words: str) -> None:
        with (self.root / "log").open("ab") as log:
            self.processes.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment))

    def wait_until(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while not done():
            if time.monotonic() > until:
                raise AssertionError(f"waited in vain for {what}\n{(self.root / 'log').read_text()}")
            time.sleep(0.1)
