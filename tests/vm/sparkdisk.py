# SPDX-License-Identifier: Apache-2.0
"""A disk with a Java run-time and Spark for guests, made once and kept in the cache: over ssh they would take a minute and more.

With them is an archive of the classes that a Master, a Worker, a driver and an executor load. Java reads it in half the
time that it takes to load the classes from their jars.
"""

from __future__ import annotations

import compileall
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guestlib.cache import cache_dir
from guestlib.process import dies_with_parent

sys.path.append(str(Path(__file__).resolve().parents[1] / "spark"))
from sparklib import SMALL_JVM, SparkMissing, ensure_spark  # noqa: E402

LABEL = "berth-spark"
JAVA_HOMES = "java-17-openjdk-*"
# Of Java, what running a program takes: the rest is as large again.
JAVA_PARTS = ("bin", "conf", "lib")
MIB = 1 << 20
# Of each step of a cluster that starts, in seconds.
PATIENCE = 600
APP = Path(__file__).resolve().parent / "waiting_app.py"
# As Spark's launcher gives them to a driver.
OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent", "util.concurrent.atomic")
OPENED_WITHIN = ("jdk.internal.ref", "sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")
MODULE_OPTIONS = [
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (*(f"java.{name}" for name in OPENED), *OPENED_WITHIN)),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
]
MASTER, WORKER, SUBMIT = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker", "org.apache.spark.deploy.SparkSubmit"


def place_of(disk: Path) -> Path:
    """Where it is made, and where guests mount it: the archive holds for that path alone."""
    return Path("/var/tmp") / f"berth-spark-{disk.stem}"


def archive_option(place: Path) -> str:
    return f"-XX:SharedArchiveFile={place}/spark.jsa"


def java(place: Path, option: str, memory: str = "256m") -> list[str]:
    """A Java of the disk that has Spark's classes, without the launcher, which is a JVM more; `option`: which archive."""
    return [f"{place}/jre/bin/java", "-cp", f"{place}/pyspark/jars/spark.jar", f"-Xmx{memory}", *SMALL_JVM.split(), option]


def environment(place: Path, local: str) -> dict[str, str]:
    """What Spark's processes want; `local`: a directory for what they put aside."""
    return {
        "JAVA_HOME": f"{place}/jre", "SPARK_HOME": f"{place}/pyspark", "SPARK_LOCAL_DIRS": local, "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(place), "PYSPARK_PYTHON": "/usr/bin/python3",
        # Spark's scripts find it out.
        "SPARK_SCALA_VERSION": "2.12",
    }  # fmt: skip


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
    java_tree, spark = java_home(), ensure_spark().parent
    recipe = [Path(__file__).read_bytes(), APP.read_bytes(), (java_tree / "release").read_bytes(), spark.name.encode()]
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
            make(java_tree, spark, final)
    return final


def make(java_tree: Path, spark: Path, final: Path) -> None:
    print(f"making a disk of Java and Spark (once, kept in {final})", file=sys.stderr, flush=True)
    root = place_of(final)
    # Of a maker that was killed.
    shutil.rmtree(root, ignore_errors=True)
    try:
        for part in JAVA_PARTS:
            # Debian's has links to /etc, which the guest lacks, and some to what is not installed.
            shutil.copytree(java_tree / part, root / "jre" / part, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("src.zip"))
        for part in ("pyspark", "py4j"):
            # pyspark once more, packed, would be taken first, and compiled by every executor.
            shutil.copytree(spark / part, root / part, ignore=shutil.ignore_patterns("*.zip"))
            # The guest's Python takes a different one's for nothing, and is slower then.
            compileall.compile_dir(root / part, quiet=2)
        order_jars(root / "pyspark" / "jars")
        with tempfile.TemporaryDirectory(dir=final.parent, prefix="partial-") as directory:
            archive_classes(root, Path(directory))
            image = Path(directory) / "image"
            size = sum(path.lstat().st_size // 4096 + 1 for path in root.rglob("*")) * 4096
            command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-L", LABEL, "-d", root, image]
            tools = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
            subprocess.run([*command, f"{size * 11 // 10 // MIB + 32}M"], env=tools, stdout=subprocess.DEVNULL, check=True)
            image.rename(final)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def order_jars(jars: Path) -> None:
    """Puts a jar that lists all others in their place: an archive holds for one order of them, and a directory has none."""
    below = jars / "all"
    below.mkdir()
    names = sorted(path.name for path in jars.glob("*.jar"))
    for name in names:
        (jars / name).rename(below / name)
    manifest = "Manifest-Version: 1.0\r\n" + folded("Class-Path: " + " ".join(f"all/{name}" for name in names)) + "\r\n"
    with zipfile.ZipFile(jars / "spark.jar", "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", manifest)


def folded(line: str) -> str:
    """As a manifest wants it: 72 bytes a line, and the next ones begin with a space."""
    first, rest = line[:70], line[70:]
    return "\r\n ".join([first, *(rest[at : at + 69] for at in range(0, len(rest), 69))]) + "\r\n"


def archive_classes(place: Path, work: Path) -> None:
    """Runs an application on a cluster of its own, and archives the classes that each process loaded."""

    def listed(role: str) -> str:
        return f"-XX:DumpLoadedClassList={work}/{role}.classes"

    executor = f"spark.executor.extraJavaOptions={SMALL_JVM} {listed('executor')}"
    small = ["--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1", "--conf", "spark.cores.max=1"]
    address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    (work / "go").touch()
    with process([*java(place, listed("master")), MASTER, *address], place, work / "master.log"):
        url = wait_for(work / "master.log", r"Starting Spark master at (\S+)")
        worker = [WORKER, *address, "--cores", "1", "--memory", "1g", "--work-dir", str(work / "apps"), url]
        with process([*java(place, listed("worker")), *worker], place, work / "worker.log"):
            wait_for(work / "worker.log", "Successfully registered with master()")
            submit = [SUBMIT, "--master", url, "--conf", executor, *small, str(APP), "0", "0", str(work / "go")]
            driver = [*java(place, listed("driver"), "512m"), *MODULE_OPTIONS, *submit]
            with process(driver, place, work / "driver.log") as running:
                if running.wait(timeout=PATIENCE):
                    raise RuntimeError(f"Spark failed:\n{(work / 'driver.log').read_text()[-3000:]}")
    lists = sorted(work.glob("*.classes"))
    found = {line for path in lists for line in path.read_text().splitlines(keepends=True) if in_archive(line)}
    # Lambdas, which begin with @, come after the classes that they belong to.
    classes = sorted(found, key=lambda line: (line.startswith("@"), line))
    (work / "all").write_text("".join(classes))
    dump = [*java(place, archive_option(place)), "-Xshare:dump", f"-XX:SharedClassListFile={work / 'all'}"]
    done = subprocess.run(dump, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Java could not archive {len(classes)} classes of {len(lists)} processes:\n{(done.stdout + done.stderr)[-3000:]}")


def in_archive(line: str) -> bool:
    """Whether a line of a list is a class that Java finds by itself, or a lambda of one, and no comment."""
    return not line.startswith("#") and " source: " not in line


@contextmanager
def process(command: list[str], place: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Ends with the block; what it says goes to `log`."""
    with log.open("wb") as output:
        variables = {**os.environ, **environment(place, str(log.parent))}
        running = subprocess.Popen(command, env=variables, cwd=log.parent, stdout=output, stderr=output, preexec_fn=dies_with_parent())
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(timeout=60)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


def wait_for(log: Path, pattern: str) -> str:
    until = time.monotonic() + PATIENCE
    while not (found := re.search(pattern, log.read_text())):
        if time.monotonic() > until:
            raise RuntimeError(f"waited in vain for {pattern!r}:\n{log.read_text()[-3000:]}")
        time.sleep(0.2)
    return found[1]


if __name__ == "__main__":
    print(ensure_spark_disk())
