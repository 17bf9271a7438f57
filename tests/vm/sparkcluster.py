# SPDX-License-Identifier: Apache-2.0
"""Starts a Spark cluster in a guest: six JVMs take minutes where they are emulated, so the cache keeps a guest in which they run.

The text of this file and the disk of `sparkdisk` are the whole recipe: so nothing of this directory is imported but them.
"""

from __future__ import annotations

from pathlib import Path

import sparkdisk
from guestlib import Guest, Preparation
from sparkdisk import LABEL, MODULE_OPTIONS, SMALL_JVM, SUBMIT

PLACE = "/var/tmp/berth-test-spark"
DEFAULTS_FILE = f"{PLACE}/defaults.conf"
MASTER, WORKER = "berth-test-be-master.service", "berth-test-be-worker.service"
# By name, what waiting_app.py is told: an executor of `dear` has more to lose, and with both drivers still more would go. And the driver's user:
# where berthd cannot see whose sockets are whose, it takes no driver of a user who has two for that of any application.
APPS = {"dear": ("0 6", "tester"), "cheap": ("12 1", "games")}
# An emulated host may be slow for longer than any of Spark's patience.
DEFAULTS = """\
spark.master spark://127.0.0.1:7077
spark.executor.memory 512m
spark.executor.cores 1
spark.executor.extraJavaOptions {jvm}
spark.cores.max 1
spark.network.timeout 600s
spark.worker.timeout 600
spark.ui.showConsoleProgress false
"""
# The first answer of each kind takes a driver longer than berthd waits, and berthd then leaves it alone for a minute.
ASK_ONCE = """
import json, urllib.request
def get(port, page=""):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/applications{page}").read()
for port in 4040, 4041:
    app = "/" + json.loads(get(port))[0]["id"]
    for page in "environment", "jobs", "storage/rdd":
        get(port, f"{app}/{page}")
    for stage in json.loads(get(port, f"{app}/stages?details=true&taskStatus=KILLED")):
        get(port, f"{app}/stages/{stage['stageId']}/{stage['attemptId']}/taskList")
"""
PATIENCE = 300


class StartedCluster:
    """A Master, a Worker, and applications whose drivers run beside them, each a unit. `begin` starts them."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.spark = sparkdisk.place_of(self.guest.disks[0])
        self.ids: dict[str, str] = {}

    def begin(self) -> None:
        guest = self.guest
        option = sparkdisk.archive_option(self.spark)
        guest.run(
            f"mkdir -p {self.spark} && {{ mountpoint -q {self.spark} || mount -o ro LABEL={LABEL} {self.spark}; }} && "
            f"rm -rf {PLACE} && install -d -m 1777 {PLACE} {PLACE}/local"
        )
        variables = sparkdisk.environment(self.spark, f"{PLACE}/local")
        guest.write_file(f"{PLACE}/environment", "".join(f"{name}={value}\n" for name, value in variables.items()))
        guest.write_file(DEFAULTS_FILE, DEFAULTS.format(jvm=f"{SMALL_JVM} {option}"))
        guest.write_file(f"{PLACE}/app.py", sparkdisk.APP.read_text())
        java = " ".join(sparkdisk.java(self.spark, option))
        common = f"--host 127.0.0.1 --webui-port 0 --properties-file {DEFAULTS_FILE}"
        self.start(MASTER, f"{java} {sparkdisk.MASTER} {common} --port 7077")
        # Meanwhile the Worker starts, and tries again until there is a Master.
        workdir = f"--work-dir {PLACE}/apps"
        self.start(WORKER, f"{java} {sparkdisk.WORKER} {common} --port 0 --cores 4 --memory 3g {workdir} spark://127.0.0.1:7077")
        self.says(MASTER, "Starting Spark master at .*")
        submit = " ".join([*sparkdisk.java(self.spark, option, "512m"), *MODULE_OPTIONS, SUBMIT, "--properties-file", DEFAULTS_FILE])
        for name, (told, user) in APPS.items():
            self.start(driver(name), f"{submit} --name {name} {PLACE}/app.py {told} {self.go(name)}", user)

    def wait_ready(self) -> None:
        """Until each application waits, with something that its executor computed and nobody has read yet."""
        self.ids = {name: self.says(driver(name), "^application .*").split()[1] for name in APPS}
        for name in APPS:
            self.guest.poll(lambda name=name: self.waits(name), PATIENCE, interval=1, what=f"{name} to wait")

    def start(self, unit: str, command: str, user: str = "tester") -> None:
        # Apart, since a JVM writes lines of either into the middle of the other's.
        outputs = [f"StandardOutput=file:{PLACE}/{unit}.out", f"StandardError=file:{PLACE}/{unit}.log"]
        properties = [f"User={user}", f"WorkingDirectory={PLACE}", f"EnvironmentFile={PLACE}/environment", *outputs]
        options = " ".join(f"--property={p}" for p in properties)
        self.guest.run(f"systemd-run --quiet --collect --unit={unit} {options} {command}")

    def go(self, name: str) -> str:
        return f"{PLACE}/go-{name}"

    def says(self, unit: str, pattern: str) -> str:
        """What the pattern matches first in its output or log; an AssertionError where it ends without."""
        files = f"{PLACE}/{unit}.out {PLACE}/{unit}.log"
        command = (
            f"state=$(systemctl is-active {unit}); grep -ahoEm1 -e '{pattern}' {files} && exit; "
            f"[ $state = active ] && exit 1; tail -n 40 {files}; exit 3"
        )

        def look() -> str | None:
            found = self.guest.run(command, check=False)
            assert found.returncode != 3, f"{unit} has ended: {found.stdout}"
            return found.stdout.strip() if found.returncode == 0 else None

        return self.guest.poll(look, PATIENCE, interval=1, what=f"{pattern!r} of {unit}")

    def waits(self, name: str) -> bool:
        return self.guest.run(f"test -e {self.go(name)}.awaited", check=False).returncode == 0


def driver(name: str) -> str:
    return f"berth-test-be-driver-{name}.service"


def prepare(guest: Guest) -> None:
    cluster = StartedCluster(guest)
    cluster.begin()
    cluster.wait_ready()
    guest.run("python3 -", input=ASK_ONCE, timeout=4 * PATIENCE)


# The name of the disk is part of the guest's command line, and tells of sparkdisk and of the application.
PREPARATION = Preparation((Path(__file__).read_text(),), prepare)
