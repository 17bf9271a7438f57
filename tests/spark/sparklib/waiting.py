# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another process does. Success ends a wait at once, so that its limit may be long:
on a slow or busy machine every event comes, only later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 600


def until(what: str, check: Callable[[], T], seconds: float = PATIENCE_S, every: float = 0.25) -> T:
    """The first value of `check` that is true; an AssertionError that names `what` after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds:g} s still not: {what}; last: {value!r}")
        time.sleep(every)
