# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/tutorial.md, which a test runs one after the other."""

from __future__ import annotations

import re

from world import FUNCTIONS, replaced

# What installs packages is tested by tests/vm/test_package.py and tests/package/run.
LEFT_OUT = ("apt ", "git clone ", "tools/package")
# They change nothing, so they may be asked again until the host is as the page shows it.
READING = re.compile(r"berthctl (status|list|plan|explain|log|check-config)\b[^>]*$|cat ")


def is_left_out(text: str) -> bool:
    return text.startswith(LEFT_OUT)


def is_reading(text: str) -> bool:
    return READING.match(text) is not None


def run_text(text: str) -> str:
    """The command for bash. Times are shorter, and an id is one of this host's."""
    return f"{FUNCTIONS}\n{replaced(text)}"


