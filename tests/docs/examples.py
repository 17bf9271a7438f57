# SPDX-License-Identifier: Apache-2.0
"""What is done with each command that the pages show: it is run, or it is left out for a reason.

`run` and tests/vm/test_docs.py run them, on a host of files and on a booted one. The tutorial is not in this table: its
commands are run one after the other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

TUTORIAL = "docs/tutorial.md"


@dataclass(frozen=True)
class Run:
    status: int = 0
    shows: tuple[str, ...] = ()  # regular expressions of lines, each found in its output
    instead: tuple[tuple[str, str], ...] = ()  # words of the page that stand for others, and those
    before: str = ""  # for the shell, in the same directory
    after: str = ""
    inside: str = ""  # the unit in which it runs
    alone: bool = False  # in an empty directory
    nudge: str = ""  # it has no end: repeated until it has shown what it should, and then it is ended
    booted: bool = False  # it needs systemd, or reads this very host
    sources: bool = False  # it needs the files of the sources, and no host; its output is the same everywhere


@dataclass(frozen=True)
class Left:
    reason: str


Example = Run | Left

# Words of many commands. newest_decision is a function of world.py.
INSTEAD = (
    ("--for 1h", "--for 2s"),
    ("--for 1min", "--for 2s"),
    ("-n 60", "-n 2"),
    ("d-0123456789ab", "$(newest_decision)"),
)

UNIT_CHANGES = Left("tests/vm/test_package.py does it, on a host that has never seen berth")
BUILD = Left("compiles berth; tools/test does it")
KUBERNETES = Left("needs a cluster; tests/kubernetes has one")
SLURM = Left("needs a Slurm; tests/slurm has one")

# By the program, where nothing is run of it.
LEFT_PROGRAMS = {
    "apt": UNIT_CHANGES,
    "berth-kube": KUBERNETES,
    "berth-slurm": SLURM,
    "kubectl": KUBERNETES,
    "meson": BUILD,
    "ninja": BUILD,
    "sbatch": SLURM,
    "scontrol": SLURM,
}

LISTED = r"^system\.slice/nginx\.service +latency-sensitive +nginx +-"
PINNED = "until berthctl list | grep -qE 'nginx.service +latency-sensitive +nginx +- +[0-9]'; do sleep 0.3; done"
AGAIN = "{ systemctl reset-failed berthd; systemctl start berthd; until berthctl status > /dev/null 2>&1; do sleep 0.3; done; " + PINNED + "; }"
ENFORCE = f"berthctl mode enforce > /dev/null && {PINNED}"
# Pins are put back and made again.
FLIP = f"berthctl mode observe > /dev/null && {ENFORCE}"
# Each connection starts a process of its own, and the journal has a line about it.
SPARKD_RUNS = (
    """python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/berth-sparkd.socket")' && """
    "until journalctl -q -u 'berth-sparkd@*' 2> /dev/null | grep -q .; do sleep 0.3; done"
)
FRESH = "rm -f hour.zst monday.zst hour.jsonl monday.jsonl"
# On a quiet host no instance uses CPU.
OBSERVATION = (
    'echo \'{"schema": "berth.observation/1", "service": "web", "instance": "web-1", "time": 1790000000, "response": "cpi", '
    '"y": 1.31, "sc": 0.42, "ss": 0.18, "u": 0.4}\' > '
)
# Tests of another build may run beside these: each has a port of its own, below those that the kernel gives out.
SERVER = f"http://127.0.0.1:{20_000 + os.getpid() % 12_000}"

EXAMPLES: dict[str, Example] = {
    # README.md
    "git clone URL berth && cd berth": Left("URL stands for the place of the sources"),
    "tools/demo": Left("boots a guest of its own, for minutes"),
    "tools/test": Left("runs all tests, this one among them"),
    "tools/package": Left("tests/package/run does it"),
    "berthctl status": Run(shows=(r"^  sees +\d+ vCPUs, ", r"^  next +berthctl ", r"^  mode +enforce: ")),
    "berthctl suggest": Run(shows=(r"^# A first configuration for ", r'^match = "system\.slice/nginx\.service"$'), booted=True),
    "berthctl reload": Run(),
    "berthctl list": Run(shows=(LISTED, r"^WORKLOAD +CLASS +SERVICE +VCPUS +PINNED ")),
    "berthctl top": Run(shows=(r"^berth on .* enforce", r"^system\.slice/nginx\.service +latency-sensitive")),
    "berthctl plan": Run(shows=(r"^Plan for ", r"^Actions$", r"^Latency-sensitive instances that share vCPUs")),
    "berthctl explain nginx": Run(shows=(r"^system\.slice/nginx\.service: latency-sensitive", r"^  at home in LLC \d")),
    "berthctl mode enforce": Run(shows=(r"enforce",)),
    "berthctl log": Run(shows=(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  applied   ", r"\bd-[0-9a-f]{12}: ")),
    "berthctl watch": Run(shows=(r"the mode is enforce now", r"now runs on vCPUs "), nudge=FLIP),
    "berthctl explain d-0123456789ab": Run(shows=(r"^Decision d-[0-9a-f]{12}",)),
    "berthctl record --for 1h -o hour.zst": Run(before=FRESH, shows=(r"^\d+ ticks? in hour\.zst",)),
    "berthctl replay hour.zst --config /etc/berth/berth.toml --compare new.toml": Run(
        instead=(("/etc/berth/", ""),), shows=(r"^A: settings of berth\.toml$", r"^FIGURE +A +B")
    ),
    "berthctl restore": Run(shows=(r"\d+ put back, ",), after=ENFORCE),
    'echo \'{"schema": "berth.request/1", "id": "train.service", "class": "best-effort", "vcpus": 2}\' > job.json': Run(),
    "ssh web7 berthctl snapshot > web7.json": Run(),
    "berthctl rank --request job.json --snapshot web*.json": Run(shows=(r"FREE", r"web7")),
    "berthctl admit --request job.json": Run(shows=(r"train\.service",), after="berthctl admit --cancel train.service"),
    # docs/
    "install -d -m 0750 -g berth-kube /etc/berth/kube": KUBERNETES,
    "install -m 0640 -g berth-kube token /etc/berth/kube/token": KUBERNETES,
    "install -m 0644 /etc/kubernetes/pki/ca.crt /etc/berth/kube/ca.crt": KUBERNETES,
    'cat > /etc/berth/kube.toml <<END\nserver = "https://10.0.0.1:6443"\nca = "/etc/berth/kube/ca.crt"\n'
    'token = "/etc/berth/kube/token"\nEND': KUBERNETES,
    "umask 077": KUBERNETES,
    "chmod 0644 /etc/berth/kube.toml": KUBERNETES,
    "cp /usr/share/doc/berth-kube/examples/berth-extender.service /etc/systemd/system/": KUBERNETES,
    "systemctl daemon-reload": KUBERNETES,
    "systemctl enable --now berth-extender": KUBERNETES,
    "openssl req -new -newkey rsa:2048 -nodes -keyout client.key -subj /CN=n1 -out n1.csr": KUBERNETES,
    "openssl x509 -req -in n1.csr -CA nodes-ca.crt -CAkey nodes-ca.key -CAcreateserial -days 365 -out client.crt": KUBERNETES,
    "install -m 0640 -g berth-kube client.crt client.key /etc/berth/kube/": KUBERNETES,
    "systemctl restart berth-kube": KUBERNETES,
    "journalctl -u berth-kube": KUBERNETES,
    "systemctl disable --now berth-kube": KUBERNETES,
    "berthctl snapshot | curl --fail-with-body --silent --show-error --data-binary @- URL/snapshots": Run(
        instead=(("URL", SERVER),),
        before=f"berthctl serve --listen {SERVER.removeprefix('http://')} & server=$!; "
        f"until curl --silent {SERVER}/healthz > /dev/null; do sleep 0.1; done",
        after="kill $server",
    ),
    "cat /run/berth/state.json": Run(shows=(r'"schema": ?"berth\.state/1"',)),
    "tools/install-deps build test": BUILD,
    "systemctl daemon-reload && systemctl reload dbus": Run(booted=True),
    "systemctl enable --now berthd": Run(booted=True, after=AGAIN),
    "systemctl disable --now berthd": Run(booted=True, after=AGAIN),
    "systemctl daemon-reload && systemctl reload dbus && journalctl --update-catalog": Run(booted=True),
    "rm -rf /run/berth /var/lib/berth /etc/berth": Left("takes the ground from under the berthd of the other commands"),
    "tests/vm/guest --name sampling up --topology small --variant 6.12": Left("boots a guest of its own"),
    "tests/vm/guest --name sampling install build/staging": Left("needs that guest"),
    "BERTH_SAMPLING_GUEST=sampling python3 -B -m pytest -p no:cacheprovider tests/vm/test_sampling.py": Left("needs that guest"),
    "berthctl progress self 42/100": Run(inside="report.service", booted=True),
    'busctl call org.berth.Node1 /org/berth/Node1 org.berth.Node1.Manager ReportProgress sd "" 0.42': Run(
        inside="report-2.service", booted=True
    ),
    "berthctl plan --snapshot docs/examples/plan/web1.json": Run(sources=True),
    "berthctl record --for 1h -o monday.zst": Run(before=FRESH, shows=(r"^\d+ ticks? in monday\.zst",)),
    "berthctl record --observations --for 1h -o monday.jsonl": Run(before=FRESH, shows=(r"^\d+ observations? in monday\.jsonl$",)),
    "berthctl replay monday.zst --observations monday.jsonl": Run(
        before="rm -f monday.jsonl", shows=(r"^Observations of .*, \d+ ticks?$", r"^\d+ observations? in monday\.jsonl$")
    ),
    "berthctl profile fit monday.jsonl": Run(before=OBSERVATION + "monday.jsonl", shows=(r"^SERVICE +RESPONSE", r"^web by cpi: not accepted: ")),
    "berthctl replay monday.zst": Run(shows=(r"^Replay of ", r"^interference score, mean +\d")),
    "berthctl replay monday.zst --config berth.toml --compare new.toml --report monday.html": Run(
        shows=(r"^Replay of ", r"^FIGURE +A +B"), after="grep -q '<svg' monday.html"
    ),
    "zstdcat berth-node-a.trace.zst | sed -n 2p | berthctl plan --snapshot -": Run(shows=(r"^Plan for ",)),
    "berthctl snapshot > snapshot.json": Run(after="grep -q 'berth.snapshot/1' snapshot.json"),
    "berthctl log --since today --json > log.json": Run(after="grep -q 'berth.log/1' log.json"),
    "berthctl plan --config /etc/berth/berth.toml -o interference.search=optimal": Run(
        instead=(("/etc/berth/", ""),), shows=(r"^Plan for ", r"^Best-effort workloads \(BE\) share$")
    ),
    # Manual pages
    "systemd-analyze security berth-sparkd@.service": Run(shows=(r"Overall exposure level for berth-sparkd@.*: [01]\.\d",), booted=True),
    "journalctl -u 'berth-sparkd@*'": Run(before=SPARKD_RUNS, booted=True),
    "berthctl mode observe": Run(shows=(r"observe",), after=ENFORCE),
    "berthctl suggest > /etc/berth/berth.toml": Run(
        after="berthctl check-config && rm /etc/berth/berth.toml && berthctl reload", booted=True
    ),
    "ssh web7 berthctl snapshot | berthctl plan --snapshot - -o interference.weighting=request": Run(
        shows=(r"^Plan for ", r"^Best-effort workloads \(BE\) share$")
    ),
    "berthctl rank --request job.json --snapshot hosts/*.json --json | jq -r '.fitting[0].host'": Run(shows=(r"^node-[ab]$",)),
    'echo \'{"schema": "berth.request/1", "id": "job.service", "class": "best-effort", "vcpus": 4}\''
    " | berthctl admit --request - && systemd-run --unit=job ./job": Run(
        shows=(r"job\.service",), after="{ systemctl stop job.service; systemctl reset-failed job.service 2> /dev/null; berthctl admit --cancel job.service; true; }", booted=True
    ),
    "berthctl set system.slice/nginx.service class=latency-sensitive": Run(
        shows=(r"^system\.slice/nginx\.service: ",), after="berthctl set nginx --reset > /dev/null"
    ),
    "berthctl set machine.slice/libpod-ID.scope class=latency-sensitive isolation=vcpus vcpus=2 deadline=2h": Run(
        shows=(r"^machine\.slice/libpod-ID\.scope: ",), after="berthctl set libpod-ID --reset > /dev/null"
    ),
    "build/tests/unit/policies/test-policies-learning": BUILD,
    "build/tests/judge/judge-simulation table --seconds 40 --seeds 3": Left("runs for minutes; its unit tests have small forms"),
    "build/tests/bench/interference/bench-ground-truth 12 10 docs": Left("runs for minutes; a unit test has its small form"),
    "for run in '5 1' '5 2' '1 3' '1 4'; do build/tests/bench/placement/bench-placement $run; done": Left("runs for minutes; a unit test has its small form"),
    "tests/fleet/run --hosts 8 --hours 48 --count-from 24 --ways stock,stock-1.25,stock-1.5,berth,extender": Left(
        "runs for minutes; tests/kubernetes has an hour of four hosts"
    ),
    "tests/fleet/run --hosts 8 --hours 48 --count-from 24 --jobs 1.6 --ways stock,stock-1.5,stock-2,berth": Left("runs for minutes"),
    "for h in $HOSTS; do ssh $h berthctl profile export > $h.json; done; berthctl profile import *.json": Run(
        before="HOSTS='web7 web8'", shows=(r"^added \d+ profiles?",), alone=True
    ),
    "berthctl top --json -n 60 > host.json": Run(after="test $(wc -l < host.json) = 2"),
    "berthctl replay hour.zst --config /etc/berth/berth.toml --compare new.toml --report hour.html": Run(
        instead=(("/etc/berth/", ""),), shows=(r"^Replay of ", r"^FIGURE +A +B"), after="grep -q '<svg' hour.html"
    ),
    "berthctl record --observations --for 1h -o hour.jsonl": Run(before=FRESH, shows=(r"^\d+ observations? in hour\.jsonl$",)),
    "berthctl profile fit --sums hour.jsonl > learned.json": Run(
        before=OBSERVATION + "hour.jsonl", after="grep -q 'berth.profiles/1' learned.json"
    ),
    "berthctl log --since yesterday --kind evict": Run(),
    "berthctl watch --workload nginx": Run(shows=(r"system\.slice/nginx\.service now runs on vCPUs ",), nudge=FLIP),
    "generate-config | berthctl check-config -": Run(shows=(r"^standard input: valid$",)),
    "berthd --once": Run(shows=(r" workloads on vCPUs ",), booted=True),
    "berthd --check-config ./berth.toml": Run(shows=(r"berth\.toml: no errors",)),
    "setfattr -n user.berth.class -v best-effort /sys/fs/cgroup/system.slice/backup.service": Run(
        after="getfattr -n user.berth.class /sys/fs/cgroup/system.slice/backup.service", booted=True
    ),
    "curl --unix-socket /run/berth/metrics.sock http://localhost/metrics": Run(shows=(r"^berth_enforcing 1$",)),
    "berthd --restore": Run(
        before="systemctl kill --signal=KILL berthd; until systemctl is-failed --quiet berthd || systemctl is-active --quiet berthd; "
        "do sleep 0.3; done; systemctl stop berthd",
        # systemd has put everything back already.
        shows=(r"^nothing to restore$",),
        after=AGAIN,
        booted=True,
    ),
    "busctl introspect org.berth.Node1 /org/berth/Node1": Run(shows=(r"\.GetPlan +method ", r"\.Mode +property +s +\"enforce\"")),
    "busctl get-property org.berth.Node1 /org/berth/Node1 org.berth.Node1.Manager Mode": Run(shows=(r'^s "enforce"$',)),
    "busctl monitor --match \"type='signal',interface='org.berth.Node1.Manager'\"": Run(shows=(r"Member=Decided",), nudge=FLIP),
}


def example_of(text: str) -> Example | None:
    """What is done with a command; None if the table lacks it."""
    return EXAMPLES.get(text) or LEFT_PROGRAMS.get(text.split()[0])
