# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest, for programs that keep containers: a cgroup with one process, as a runtime without systemd makes it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
ABOVE = ROOT / "berthtest"


def allow_containers() -> None:
    """Makes the cgroup above them, with the controllers that berth uses."""
    ABOVE.mkdir(exist_ok=True)
    for group in (ROOT, ABOVE):
        (group / "cgroup.subtree_control").write_text("+cpuset +cpu +memory")


class Container:
    def __init__(self, name: str, work: Callable[[], None], quota: str | None = None) -> None:
        """Begins the work, which does not return, in a process of its own. `quota` is its cpu.max."""
        self.name = name
        self.group = ABOVE / name
        self.group.mkdir()
        if quota is not None:
            (self.group / "cpu.max").write_text(quota)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                work()
            finally:
                os._exit(1)
        # Not by the process itself: it might not have come so far when its cgroup is killed.
        (self.group / "cgroup.procs").write_text(str(self.pid))

    def end(self) -> None:
        (self.group / "cgroup.kill").write_text("1")
        os.waitpid(self.pid, 0)
        self.remove()

    def remove(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self.group.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
