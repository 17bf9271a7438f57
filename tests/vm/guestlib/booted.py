# SPDX-License-Identifier: Apache-2.0
"""Guests as they are right after their boot, or once something slow was started in them, kept in the cache: a guest that goes on from there is
ready in seconds."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .cache import Logged, ensure
from .emulator import Emulator
from .errors import GuestError
from .image import Image
from .machine import Qmp, Topology, command_line

if TYPE_CHECKING:
    from .guest import Guest

PREFIX = "booted-"
# Bytes a second: the guest stands still meanwhile, so nothing else wants the disk.
AS_FAST_AS_POSSIBLE = 1 << 40


@dataclass(frozen=True)
class Preparation:
    """What is done in a booted guest before its state is kept. `recipe`: the texts that decide what that is.

    Its clock then goes on from that moment: what runs there would take an hour that is missing for a time-out.
    """

    recipe: tuple[str, ...]
    run: Callable[[Guest], None]


@dataclass(frozen=True)
class Booted:
    """The memory of a guest that stands, and its disk at that moment."""

    path: Path

    @property
    def memory(self) -> Path:
        return self.path / "memory"

    @property
    def disk(self) -> Path:
        return self.path / "disk.img"


def ensure_booted(
    emulator: Emulator,
    image: Image,
    topology: Topology,
    kernel_arguments: str,
    disks: Sequence[Path],
    preparation: Preparation | None,
    boot: Callable[[Path, Path], None],
) -> Booted:
    """The cached state of such a guest. `boot(disk, memory)` makes it first where the cache lacks it: from that disk, into that file."""
    machine = command_line(emulator, image, topology, Path("state"), kernel_arguments, disks)
    recipe = "\n".join([*machine, *(preparation.recipe if preparation else ())])
    name = f"{PREFIX}{image.path.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"

    def fill(work: Path, run: Logged) -> None:
        made = Booted(work)
        run("cp", "--sparse=always", "--reflink=auto", image.disk, made.disk)
        boot(made.disk, made.memory)

    return Booted(ensure(name, "a booted guest", "booted", fill))


def save(control: Qmp, memory: Path) -> None:
    """Stops the guest, and writes its memory and devices to a file."""
    control.execute("stop")
    control.execute("migrate-set-parameters", **{"max-bandwidth": AS_FAST_AS_POSSIBLE})
    control.execute("migrate", uri=f"file:{memory}")
    while (said := control.execute("query-migrate"))["status"] not in ("completed", "failed", "cancelled"):
        time.sleep(0.05)
    if said["status"] != "completed":
        raise GuestError(f"QEMU could not save the guest: {said}")


def go_on(control: Qmp, deadline: float) -> None:
    """Lets a guest run that began with a saved state, once QEMU has read it."""
    until = time.monotonic() + deadline
    while control.execute("query-status")["status"] == "inmigrate":
        if time.monotonic() > until:
            raise GuestError(f"QEMU did not read the guest's state within {deadline:g} s")
        time.sleep(0.05)
    control.execute("cont")
