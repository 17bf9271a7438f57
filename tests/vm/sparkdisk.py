# SPDX-License-Identifier: Apache-2.0
"""A disk with a Java run-time and Spark for guests, made once and kept in the cache: over ssh they would take a minute and more."""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from guestlib.image import cache_dir

sys.path.append(str(Path(__file__).resolve().parents[1] / "spark"))
from sparklib import SparkMissing, ensure_spark  # noqa: E402

LABEL = "berth-spark"
JAVA_HOMES = "java-17-openjdk-*"
# Of Java, what running a program takes: the rest is as large again.
JAVA_PARTS = ("bin", "conf", "lib")
MIB = 1 << 20


def java_home() -> Path:
    """That of tools/packages-spark: this Spark knows Java up to 17, and what is `java` here may be a later one."""
    found = sorted(path for path in Path("/usr/lib/jvm").glob(JAVA_HOMES) if (path / "bin/java").exists())
    if not found:
        raise SparkMissing("there is no Java 17; install openjdk-17-jre-headless")
    return found[0]


def ensure_spark_disk() -> Path:
    """The cached disk of this Java and this Spark, made first where the cache lacks it; SparkMissing where one cannot be had.

    An ext4 without journal, labelled LABEL, of `jre`, `pyspark` and `py4j`.
    """
    java, spark = java_home(), ensure_spark().parent
    recipe = [Path(__file__).read_bytes(), (java / "release").read_bytes(), spark.name.encode()]
    digest = hashlib.sha256(b"\0".join(recipe)).hexdigest()[:16]
    cache = cache_dir().parent / "spark-disk"
    cache.mkdir(parents=True, exist_ok=True)
    final = cache / f"{digest}.img"
    with (cache / "lock").open("w") as lock:
        # One at a time; the kernel drops the lock of one that dies.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.exists():
            # Those of former recipes; a guest that runs has its own still open.
            for stale in cache.glob("*.img"):
                stale.unlink()
            make(java, spark, final)
    return final


def make(java: Path, spark: Path, final: Path) -> None:
    print(f"making a disk of Java and Spark (once, kept in {final})", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=final.parent, prefix="partial-") as directory:
        root, image = Path(directory) / "root", Path(directory) / "image"
        for part in JAVA_PARTS:
            # Debian's has links to /etc, which the guest lacks, and some to what is not installed.
            shutil.copytree(java / part, root / "jre" / part, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("src.zip"))
        for part in ("pyspark", "py4j"):
            # pyspark once more, packed, would be taken first, and compiled by every executor.
            shutil.copytree(spark / part, root / part, ignore=shutil.ignore_patterns("*.zip"))
            # The guest's Python takes a different one's for nothing, and is slower then.
            compileall.compile_dir(root / part, quiet=2)
        size = sum(path.lstat().st_size // 4096 + 1 for path in root.rglob("*")) * 4096
        command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-L", LABEL, "-d", root, image]
        environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
        subprocess.run([*command, f"{size * 11 // 10 // MIB + 32}M"], env=environment, stdout=subprocess.DEVNULL, check=True)
        image.rename(final)
