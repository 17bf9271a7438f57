# SPDX-License-Identifier: Apache-2.0
"""Installs Spark and caches it, under a hash of its requirements, with an archive of the classes that it loads."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RECIPE = Path(__file__).resolve().parent.parent / "requirements.txt"
# A JVM takes all resources that it can get. These options make it start fast, and leave memory for others.
SMALL_JVM = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=48m -Xss512k -XX:-UsePerfData "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
# An application that loads most classes of a driver and an executor.
SMALL_APP = """
from pyspark import SparkContext
context = SparkContext.getOrCreate()
context.parallelize(range(100), 4).map(lambda n: (n % 7, n)).reduceByKey(lambda a, b: a + b).collect()
context.stop()
"""


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


def archive_of(home: Path) -> Path:
    """The archive of this Spark's classes for this Java, made first if the cache lacks it. A JVM that has it starts in two thirds of the time.

    A JVM ignores an archive of another Java, and one that is not there.
    """
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    final = home.parent / f"classes-{hashlib.sha256(java.encode()).hexdigest()[:16]}.jsa"
    with (home.parent.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.exists():
            make_archive(home, final)
    return final


def make_archive(home: Path, final: Path) -> None:
    partial = final.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        app = Path(directory) / "app.py"
        app.write_text(SMALL_APP)
        options = f"spark.driver.extraJavaOptions={SMALL_JVM} -XX:ArchiveClassesAtExit={partial}"
        command = [str(home / "bin/spark-submit"), "--master", "local[1]", "--conf", options, "--conf", "spark.ui.port=0", str(app)]
        environment = {**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": str(home.parent), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not partial.exists():
        raise SparkMissing(f"no archive of classes: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-500:]}")
    partial.rename(final)
