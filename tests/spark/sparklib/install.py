# SPDX-License-Identifier: Apache-2.0
"""Installs Spark and caches it, under a hash of its requirements."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

RECIPE = Path(__file__).resolve().parent.parent / "requirements.txt"


class SparkMissing(Exception):
    """Spark cannot be had on this machine; the message says why."""


def cache_dir() -> Path:
    """$BERTH_CACHE, else $XDG_CACHE_HOME/berth, else /var/cache/berth; Spark is in `spark` below."""
    if own := os.environ.get("BERTH_CACHE"):
        return Path(own) / "spark"
    return Path(os.environ.get("XDG_CACHE_HOME", "/var/cache")) / "berth" / "spark"


def ensure_spark() -> Path:
    """SPARK_HOME of the cached Spark, installed first where the cache lacks it: some 320 MB from PyPI."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {RECIPE.read_text()}".encode()).hexdigest()[:16]
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    final = cache / digest
    with (cache / "lock").open("w") as lock:
        # One at a time; the kernel drops the lock of one that dies.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.exists():
            install(final)
    return final / "pyspark"


def install(final: Path) -> None:
    partial = final.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    print(f"installing Spark (once, kept in {final})", file=sys.stderr, flush=True)
    # Of packages that are named one by one, nothing else is taken in.
    command = [
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check",
        "--target", str(partial), "--requirement", str(RECIPE),
    ]
    environment = {**os.environ, "PIP_ROOT_USER_ACTION": "ignore"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SparkMissing("pip: " + (done.stderr or done.stdout).strip()[-500:])
    partial.rename(final)
