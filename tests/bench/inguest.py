# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks have in common that boot a guest of their own, and run their program `inside` there."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "vm"))

from guestlib import TOPOLOGIES, VARIANTS, Guest, GuestError, Topology  # noqa: E402

TWO_SOCKETS = TOPOLOGIES["two-socket"]


def parser_of(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run", description=description)
    parser.add_argument("--staging", type=Path, required=True, metavar="DIR", help="DESTDIR of `ninja install` with prefix /usr")
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="6.1", help="kernel (default: %(default)s)")
    return parser


def run_inside(
    name: str, options: argparse.Namespace, words: Sequence[object], topology: Topology = TWO_SOCKETS, also: Sequence[Path] = ()
) -> int:
    """The program's exit status. `name`: of its directory here. `also`: directories that it finds beside itself."""
    place = f"/root/bench-{name}"
    try:
        with Guest.boot(f"bench-{name}-{os.getpid()}", topology=topology, variant=options.variant) as guest:
            guest.install(options.staging)
            for path in (HERE / name / "inside", *also):
                guest.push(path, f"{place}/{path.name}")
            return guest.stream([f"{place}/inside", *map(str, words)])
    except GuestError as error:
        print(f"run: {error}", file=sys.stderr)
        return 1
