# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, told so that the reader need not look elsewhere first."""

from __future__ import annotations

import re
from pathlib import Path
from subprocess import CompletedProcess

COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class GuestError(Exception):
    """The guest, its image or the way to it failed; not the command run in it."""


class GuestSilent(GuestError):
    """QEMU runs and its guest does not even greet any more: a rare hang where several vCPUs execute at the same time."""


class CommandFailed(GuestError):
    """A command in the guest returned another status than 0."""

    def __init__(self, result: CompletedProcess[str]) -> None:
        super().__init__(
            f"status {result.returncode} from: {result.args}\n"
            f"--- stdout\n{result.stdout or ''}\n--- stderr\n{result.stderr or ''}"
        )
        self.result = result


def tail(log: Path, lines: int = 40) -> str:
    """The end of a log, for an error message, with the place of the rest."""
    try:
        text = COLOUR.sub("", log.read_text(errors="replace"))
    except OSError as error:
        return f"(no log: {error})"
    written = [line for line in text.splitlines() if line.strip()]
    return "\n".join([f"--- last lines of {log}", *written[-lines:]])
