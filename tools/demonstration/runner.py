# SPDX-License-Identifier: Apache-2.0
"""Runs the steps one after the other; one that fails is reported, and the others still run."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .host import BEAT, NotSeen, run, say

# Looked at when a step fails.
VIEWS = {
    "berthd-journal": ["journalctl", "--unit=berthd.service", "--no-pager", "--lines=2000"],
    "units-journal": ["journalctl", "--unit=*-berth-demo.service", "--no-pager", "--lines=500"],
    "status": ["berthctl", "status"],
    "list": ["berthctl", "list"],
    "plan": ["berthctl", "plan"],
    "plan.json": ["berthctl", "plan", "--json"],
    "log": ["berthctl", "log", "-n", "100"],
    "rules": ["cat", "/etc/berth/berth.toml.d/90-berth-demo.toml"],
    "units": ["systemctl", "status", "--no-pager", "berthd.service", "*-berth-demo.service"],
    "load": ["top", "-b", "-n", "1"],
}


class Runner:
    """Keeps the figures, the seconds and the failures of the steps."""

    def __init__(self, logs: Path | Callable[[], Path], restore: Callable[[], None]) -> None:
        self.figures: dict[str, Any] = {}
        self.steps: list[dict[str, Any]] = []
        # The directory, or what makes it for the first step that fails.
        self._logs = logs
        self._restore = restore

    @property
    def failed(self) -> list[dict[str, Any]]:
        return [step for step in self.steps if step["problem"]]

    def step(self, name: str, title: str, function: Callable[[], dict[str, Any]]) -> None:
        """Runs a step, keeps what it returns as figures[name], and goes back to the state that each step starts from."""
        number = len(self.steps) + 1
        say(f"\n\033[1m[{number}] {title}\033[0m" if sys.stdout.isatty() else f"\n[{number}] {title}")
        started = time.monotonic()
        step = {"name": name, "title": title, "problem": ""}
        self.steps.append(step)
        try:
            self.figures[name] = function()
        except Exception as error:
            self._report(step, number, error)
        try:
            self._restore()
        except Exception as error:
            self._report(step, number, error)
        step["seconds"] = round(time.monotonic() - started, 1)
        step["beat_s"] = round(BEAT.usual_s, 2)

    def _report(self, step: dict[str, Any], number: int, error: Exception) -> None:
        """An error that no code here foresees is one of this program, and its place is of use."""
        text = str(error) if isinstance(error, NotSeen) else "".join(traceback.format_exception(error))
        step["problem"] = "; ".join(filter(None, [step["problem"], text.strip()]))
        if not isinstance(self._logs, Path):
            self._logs = self._logs()
        directory = self._logs / f"{number}-{step['name']}"
        say(f"  NOT SHOWN: {text.strip()}")
        say(f"  (one tick and one command take {BEAT.slow_s:.1f} s on this host now)")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "problem").write_text(text)
        for name, command in VIEWS.items():
            try:
                (directory / name).write_text(run(*command, check=False))
            except (NotSeen, OSError) as failure:
                (directory / name).write_text(f"{failure}\n")
        say(f"  Logs: {directory}. The other steps go on.")
