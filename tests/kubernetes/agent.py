# SPDX-License-Identifier: Apache-2.0
"""A running berth-kube."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import berthstate
from waiting import PATIENCE_S, until


class Agent:
    """Its host's berthd is a file, which a test writes until a real one does."""

    def __init__(self, program: Path, directory: Path, node: str, *options: str) -> None:
        self.node = node
        directory.mkdir(parents=True, exist_ok=True)
        self.state_file = directory / "state.json"
        self.log = directory / f"{node}.log"
        self.config = directory / "kube.toml"
        if not self.config.exists():
            self.config.write_text("")
        self.words = [str(program), "--config", str(self.config), "--node", node, "--state", str(self.state_file), *options]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Agent:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def say(self, **figures: Any) -> None:
        berthstate.say(self.state_file, self.node, **figures)

    def writes(self, **figures: Any) -> bool:
        """As a berthd that goes on writing its state, at each look of a test. Always true."""
        self.say(**figures)
        return True

    def has_said(self, words: str) -> bool:
        return any(words in line for line in self.said())

    def said(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def says(self, words: str) -> None:
        until(lambda: self.has_said(words), f'"{words}" from berth-kube')

    def once(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.words, "--once"], capture_output=True, text=True, timeout=PATIENCE_S)
