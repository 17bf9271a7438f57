# SPDX-License-Identifier: Apache-2.0
"""The QEMU that runs the guests: Debian 13's, on every machine.

Debian 12 has QEMU 7.2. There, a guest takes four times as long to start a program. One vCPU's thread may also translate
code while another one writes to it, and keep the old translation for ever. A kernel that patches itself, as for eBPF, then
hangs. QEMU 8.1 mended that by its commit deba78709ae8.

The files are extracted into the cache, and run there by their own loader with their own libraries. Nothing is installed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from .cache import ISOLATED, Logged, ensure

PACKAGE = "qemu-system-x86"
SUITE = "trixie"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True)
class Emulator:
    """A tree of Debian that has QEMU."""

    tree: Path

    def command(self) -> list[str]:
        """The words that run QEMU; its options follow."""
        libraries = self.tree / LIBRARIES
        return [
            "env", f"QEMU_MODULE_DIR={libraries / 'qemu'}",
            str(self.tree / "usr/lib64/ld-linux-x86-64.so.2"), "--argv0", "qemu-system-x86_64", "--library-path", str(libraries),
            str(self.tree / "usr/bin/qemu-system-x86_64"),
            "-L", str(self.tree / "usr/share/qemu"), "-L", str(self.tree / "usr/share/seabios"),
        ]


def cache_name() -> str:
    return f"qemu-{hashlib.sha256(' '.join(extraction(Path())).encode()).hexdigest()[:16]}"


def extraction(tree: Path) -> list[str]:
    """The command that fills `tree`."""
    return [*ISOLATED, "mmdebstrap", "--mode=root", "--variant=extract", "--format=directory", f"--include={PACKAGE}", SUITE, str(tree)]


def ensure_emulator() -> Emulator:
    """The cached QEMU, fetched first where the cache lacks it: some 50 MB, and 5 s of a processor."""
    return Emulator(ensure(cache_name(), "QEMU", "qemu", fetch) / "tree")


def fetch(work: Path, run: Logged) -> None:
    run(*extraction(work / "tree"))
