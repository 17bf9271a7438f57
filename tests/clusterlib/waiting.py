# SPDX-License-Identifier: Apache-2.0
"""Waiting for events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 600.0


def until(true: Callable[[], Any], what: str) -> Any:
    """Waits for an event: what `true` returns once it is true."""
    end = time.monotonic() + PATIENCE_S
    while not (value := true()):
        assert time.monotonic() < end, f"no {what} within {PATIENCE_S:.0f} s"
        time.sleep(0.05)
    return value
