# SPDX-License-Identifier: Apache-2.0
"""Cgroups for the cluster's processes, in this machine's own v2 tree."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from .waiting import PATIENCE_S


def v2_root() -> Path | None:
    """Where the cgroup v2 tree is mounted, alone or beside v1; None where it is not, or is not ours to change."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            root = Path(fields[4])
            return root if os.access(root / "cgroup.procs", os.W_OK) else None
    return None


class Groups:
    """Cgroups below one of ours; with it goes whoever lives there."""

    NAME = "berth-spark"

    def __init__(self, root: Path) -> None:
        self.base = root / self.NAME
        self.remove()
        self.base.mkdir()

    def path(self, name: str) -> Path:
        group = self.base / name
        group.mkdir(exist_ok=True)
        return group

    def workload(self, name: str) -> str:
        """The id that berth knows it by."""
        return f"{self.NAME}/{name}"

    def enter(self, name: str) -> Callable[[], None]:
        """For `preexec_fn`: the child, and all that it starts, lives there."""
        procs = self.path(name) / "cgroup.procs"

        def in_child() -> None:
            procs.write_text("0")

        return in_child

    def move(self, name: str, pid: int) -> None:
        (self.path(name) / "cgroup.procs").write_text(str(pid))

    def pids(self, name: str) -> list[int]:
        return [int(pid) for pid in (self.path(name) / "cgroup.procs").read_text().split()]

    def remove(self) -> None:
        if not self.base.exists():
            return
        (self.base / "cgroup.kill").write_text("1")
        groups = sorted((path for path in self.base.rglob("*") if path.is_dir()), reverse=True)
        for group in [*groups, self.base]:
            end = time.monotonic() + PATIENCE_S
            while True:
                try:
                    group.rmdir()
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.02)  # the kernel lets go of the killed shortly
