# SPDX-License-Identifier: Apache-2.0
"""A standalone cluster: a Master, a Worker, and applications whose drivers run beside them (client mode)."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from .groups import Groups
from .install import SMALL_JVM, archive_of
from .waiting import PATIENCE_S, until

APP = Path(__file__).resolve().parent.parent / "app.py"


@functools.cache
def jvm_options(home: Path) -> str:
    return f"{SMALL_JVM} -XX:SharedArchiveFile={archive_of(home)}"


def environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/root"),
        "LANG": "C.UTF-8",
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": jvm_options(home),
        "PYTHONPATH": str(home.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYSPARK_PYTHON": sys.executable,
        **({"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}),
    }


class Logged:
    """A process in a cgroup of its own, whose output and log go to files."""

    def __init__(self, name: str, command: list[str], home: Path, directory: Path, groups: Groups) -> None:
        # Apart, since a JVM writes lines of either into the middle of the other's.
        self.out, self.log = directory / f"{name}.out", directory / f"{name}.log"
        with self.out.open("w") as out, self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, env=environment(home), cwd=directory, stdin=subprocess.DEVNULL, stdout=out,
                stderr=log, preexec_fn=groups.enter(name), start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def says(self, pattern: str, seconds: float = PATIENCE_S) -> str:
        """What the pattern's group matched first in its output's or its log's whole lines."""

        def look() -> str | None:
            ended = self.process.poll() is not None
            lines = "".join(file.read_text().rpartition("\n")[0] + "\n" for file in (self.out, self.log))
            found = re.search(pattern, lines, re.MULTILINE)
            if not found and ended:
                raise AssertionError(f"{self.log.name}: ended with {self.process.returncode}\n{self.log.read_text()[-3000:]}")
            return found.group(1) if found else None

        return until(f"{pattern!r} in {self.log}", look, seconds)


class Cluster:
    """One Master and one Worker, on free ports of the loopback."""

    def __init__(self, home: Path, directory: Path, groups: Groups, cores: int = 4, memory: str = "3g") -> None:
        self.home, self.directory, self.groups = home, directory, groups
        self.jvm = jvm_options(home)
        spark_class = str(home / "bin" / "spark-class")
        address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self.master = Logged(
            "master", [spark_class, "org.apache.spark.deploy.master.Master", *address], home, directory, groups
        )
        self.url = self.master.says(r"Starting Spark master at (spark://\S+)")
        self.worker = Logged(
            "worker",
            [spark_class, "org.apache.spark.deploy.worker.Worker", *address, "--cores", str(cores), "--memory", memory,
             "--work-dir", str(directory / "work"), self.url],
            home, directory, groups,
        )
        self.worker.says(r"(Successfully registered with master)")

    def submit(
        self, name: str, *arguments: str, cores: int = 1, conf: dict[str, str] | None = None, app: Path = APP, wait: bool = True
    ) -> Application:
        """Starts it; with `wait`, until it says its id and address."""
        application = Application(self, name, app, list(arguments), cores, conf or {})
        if wait:
            _ = application.id, application.web
        return application


class Application(Logged):
    """A program, its driver in a cgroup named like it; its executors live in the Worker's, as they do by default."""

    def __init__(
        self, cluster: Cluster, name: str, program: Path, arguments: list[str], cores: int, conf: dict[str, str]
    ) -> None:
        settings = {
            "spark.ui.port": "0",
            "spark.ui.showConsoleProgress": "false",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": str(cores),
            "spark.executor.extraJavaOptions": cluster.jvm,
            "spark.driver.extraJavaOptions": cluster.jvm,
            "spark.sql.shuffle.partitions": "4",
            # Later stages are there from the start of their job.
            "spark.sql.adaptive.enabled": "false",
            **conf,
        }
        command = [str(cluster.home / "bin" / "spark-submit"), "--master", cluster.url, "--name", name,
                   "--driver-memory", "512m"]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        super().__init__(name, [*command, str(program), *arguments], cluster.home, cluster.directory, cluster.groups)

    @functools.cached_property
    def id(self) -> str:
        return self.says(r"^application (\S+)")

    @functools.cached_property
    def web(self) -> str:
        return self.says(r"^web (\S+)")

    def rest(self, path: str) -> object:
        """What the driver itself answers, to compare with."""
        url = f"{self.web}/api/v1/applications/{self.id}/{path}"
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def executor_pids(self) -> dict[str, int]:
        """Of its executors on this machine, by their id."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                arguments = (entry / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if "--app-id" in arguments and self.id in arguments and "--executor-id" in arguments:
                found[arguments[arguments.index("--executor-id") + 1]] = int(entry.name)
        return found

    def cpu_seconds(self) -> float:
        """What its driver's JVM has used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
