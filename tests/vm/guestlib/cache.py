# SPDX-License-Identifier: Apache-2.0
"""Where the guests' files are kept, and how they are made there."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import GuestError, tail
from .process import dies_with_parent

# mmdebstrap mounts /proc, /sys and /dev below the new root. In namespaces of
# their own, these end with the build, even with one that is killed.
ISOLATED = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def cache_dir() -> Path:
    """$BERTH_CACHE, else $XDG_CACHE_HOME/berth, else /var/cache/berth; what guests need is in `vm` below."""
    if own := os.environ.get("BERTH_CACHE"):
        return Path(own) / "vm"
    return Path(os.environ.get("XDG_CACHE_HOME", "/var/cache")) / "berth" / "vm"


@dataclass(frozen=True)
class Logged:
    """Runs the steps of a build, with what they print going to its log."""

    log: int

    def __call__(self, *command: str | Path) -> None:
        env = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
        subprocess.run(
            [str(word) for word in command],
            check=True,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            preexec_fn=dies_with_parent(),
        )


def ensure(name: str, what: str, log_name: str, fill: Callable[[Path, Logged], None]) -> Path:
    """The directory `name` of the cache, filled first where the cache lacks it. `what`: for messages."""
    final = cache_dir() / name
    if final.exists():
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with locked(final.parent / "lock"):
        # Another builder may have finished while this one waited.
        if not final.exists():
            build(final, what, log_name, fill)
    return final


def build(final: Path, what: str, log_name: str, fill: Callable[[Path, Logged], None]) -> None:
    """Builds beside `final` and renames, so that an interrupted build leaves nothing behind that is not whole."""
    if os.geteuid() != 0:
        raise GuestError(f"building {what} needs root (mmdebstrap, ownership of its files)")
    for left_over in final.parent.glob("build.*"):
        shutil.rmtree(left_over)
    work = Path(tempfile.mkdtemp(prefix="build.", dir=final.parent))
    log = final.parent / f"build-{log_name}.log"
    print(f"building {what} {final.name}; log: {log}", file=sys.stderr)
    try:
        with log.open("w") as output:
            fill(work, Logged(output.fileno()))
        work.chmod(0o755)
        work.rename(final)
    except subprocess.CalledProcessError as error:
        raise GuestError(f"{error.cmd[0]} failed ({error.returncode})\n{tail(log)}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One builder at a time; the kernel drops the lock of a builder that dies."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another builder below {path.parent}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
