# SPDX-License-Identifier: Apache-2.0
"""Programs that run in the guest for long, without a connection to it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from guestlib import Guest


def seed_option() -> str:
    """For a program that draws: --seed from BERTH_SEED, as other tests draw by it. pytest shows the line where the test fails."""
    seed = int(os.environ.get("BERTH_SEED") or "1")
    print(f"repeat with: BERTH_SEED={seed}")
    return f"--seed {seed}"


def result_of(guest: Guest, program: Path, options: str, deadline_s: float) -> Any:
    """Runs a Python program of this directory in the guest, and returns the JSON that it prints at its end."""
    place = "/run/berth-test-program"
    result, log = f"{place}/result.json", f"{place}/log"
    for file in (program, program.with_name("container.py")):
        guest.write_file(f"{place}/{file.name}", file.read_text())
    run = f"python3 {place}/{program.name} {options} > {result}.new 2> {log}; mv {result}.new {result}"
    guest.run(f"setsid sh -c '{run}' </dev/null >/dev/null 2>&1 &")
    try:
        guest.poll(f"test -e {result}", deadline_s, interval=1, what=f"{program.name} to end")
        text = guest.read_file(result)
        assert text.startswith("{"), guest.read_file(log)[-4000:]
        return json.loads(text)
    finally:
        guest.run(f"rm -rf {place}")
