# SPDX-License-Identifier: Apache-2.0
"""Green results that are kept in the cache, each under a name and a hash of all that it depends on."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

UNUSED_DAYS = 30


@dataclass(frozen=True)
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")

    @property
    def green(self) -> bool:
        """A run that counted nothing shows nothing."""
        return self.passed > 0 and self.failed == 0


def default_directory() -> Path:
    if own := os.environ.get("BERTH_CACHE"):
        return Path(own) / "green"
    return Path(os.environ.get("XDG_CACHE_HOME", "/var/cache")) / "berth" / "green"


class Green:
    """Removing the directory is always safe. Where it cannot be written to, nothing is kept; without one, nothing is found either."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory

    def find(self, name: str, hash: str) -> Count | None:
        """What a green run of exactly these inputs counted."""
        if self.directory is None:
            return None
        path = self._path(name, hash)
        try:
            kept = Count(**json.loads(path.read_text())["count"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        try:
            os.utime(path)
        except OSError:
            pass
        return kept if kept.green else None

    def keep(self, name: str, hash: str, count: Count, seconds: float) -> None:
        if self.directory is None or not count.green:
            return
        said = {"name": name, "count": asdict(count), "seconds": round(seconds), "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        path = self._path(name, hash)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(said) + "\n")
            part.rename(path)
        except OSError:
            # The next run finds nothing, and runs.
            pass

    def forget_old(self) -> None:
        oldest = time.time() - UNUSED_DAYS * 86400
        for path in self.directory.glob("*") if self.directory else ():
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink()
            except OSError:
                pass

    def _path(self, name: str, hash: str) -> Path:
        return self.directory / f"{name.replace('/', '.')}-{hash}"
