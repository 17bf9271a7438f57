# SPDX-License-Identifier: Apache-2.0
"""The script that runs one command of a page, and the files that the pages take for granted.

A host needs workloads that rules() names, and a berthd in enforce mode. The script is for bash.
"""

from __future__ import annotations

import re
import shlex

from examples import INSTEAD, Run
from shown import ROOT, blocks

NGINX, BACKUP, JOB = "nginx.service", "backup.service", "job.service"
CONTAINER = "machine.slice/libpod-ID.scope"
METRICS = "/run/berth/metrics.sock"
# Programs of pages that are not everywhere.
OTHER_PROGRAMS = ("busctl", "curl", "jq", "zstdcat")
# How often a command without an end is nudged before it is said to show nothing.
NUDGES = 120

# Rules for what the pages speak of beside the README's own.
FURTHER_RULES = f"""
[[workload]]
match = "machine.slice/libpod-*.scope"
class = "best-effort"

[[workload]]
match = "system.slice/report*.service"
class = "latency-sensitive"
vcpus = 1

[[workload]]
match = "system.slice/{JOB}"
class = "best-effort"
"""


def rules() -> str:
    """The configuration that the README shows, and FURTHER_RULES."""
    readme = ROOT / "README.md"
    (configuration,) = ("\n".join(lines) for language, _, lines in blocks("README.md", readme.read_text()) if language == "toml")
    return configuration + FURTHER_RULES


# Other hosts are this one. A page's generate-config prints a configuration.
FUNCTIONS = """
ssh() { shift; "$@"; }
generate-config() { cat new.toml; }
newest_decision() { berthctl log --json -n 50 | grep -o 'd-[0-9a-f]\\{12\\}' | head -n 1; }
"""

# Makes the files of the pages in the present directory.
FILES = f"""
{FUNCTIONS}
set -e
printf '%s\\n' '[interference]' 'weighting = "request"' > new.toml
echo 'mode = "observe"' > berth.toml
echo '{{"schema": "berth.request/1", "id": "train.service", "class": "best-effort", "vcpus": 2}}' > job.json
berthctl snapshot > snapshot.json
name=$(grep -o '"host": *"[^"]*"' snapshot.json | head -n 1)
as() {{ sed "s|$name|\\"host\\": \\"$1\\"|" snapshot.json; }}
as web7 > web7.json
mkdir hosts
as node-a > hosts/a.json
as node-b > hosts/b.json
berthctl record --for 3s -o hour.zst
cp hour.zst monday.zst
cp hour.zst berth-node-a.trace.zst
printf '%s\\n' '#!/bin/sh' 'exec sleep 300' > job
chmod +x job
"""


def other_programs(text: str) -> list[str]:
    """Those of OTHER_PROGRAMS that a command starts."""
    return [program for program in OTHER_PROGRAMS if re.search(rf"(^|\| *){program}\b", text)]


def replaced(text: str, instead: tuple[tuple[str, str], ...] = ()) -> str:
    for shown, run in (*instead, *INSTEAD):
        text = text.replace(shown, run)
    return text


def script(text: str, example: Run, directory: str) -> str:
    """Runs the command in a copy of `directory`. Its output is the script's, and its status, unless something before or after it fails.

    A command without an end is repeatedly nudged until it has shown what it should, and then ended: status 0.
    """
    command = replaced(text, example.instead)
    if example.nudge:
        command = endless(command, example)
    copy = "" if example.alone else f'cp -R {shlex.quote(directory)}/. "$here"'
    return f"""{FUNCTIONS}
here=$(mktemp -d) || exit 99
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 99
{copy}
{example.before or ":"} || exit 98
{command}
status=$?
{example.after or ":"} || exit 97
exit $status
"""


def endless(command: str, example: Run) -> str:
    seen = " && ".join(f"grep -qP -- {shlex.quote(pattern)} shown" for pattern in example.shows)
    return f"""{command} > shown & shower=$!
nudges=0
until {seen}; do
  kill -0 $shower && [ $((nudges += 1)) -le {NUDGES} ] || break
  {example.nudge}
  sleep 0.5
done
kill $shower
wait $shower
cat shown
{seen}"""


def within(unit: str, body: str) -> str:
    """The same script as a process of a transient unit that berthd knows."""
    known = f"until berthctl list --ids | grep -q {shlex.quote(unit)}; do sleep 0.3; done"
    return f"systemd-run --quiet --collect --wait --pipe --unit={unit} bash -c {shlex.quote(known + body)}"


# Output as a page shows it


# The host of the pages, sizes, ids, and numbers with what joins them.
VARYING = {
    # Where systemd answers too late, it has set the value already when berth tries again.
    r"\(before: all vCPUs\)": r"\(before: .*vCPUs.*\)",
    r"\bweb1\b": r"\S+",
    r"\b(?:[KMGT]i)?B\b": "(?:[KMGT]i)?B",
    r"\bd-[0-9a-f]{12}\b": "d-[0-9a-f]{12}",
    r"\d+(?:[-,.:]\d+)*": r"\d+(?:[-,.:]\d+)*",
    r"\.\.\.": ".*",
    r"\s+": r"\s+",
}


def pattern_of(line: str) -> str:
    """A regular expression for a line of the page: other numbers, ids and widths may stand there, and anything for "..."."""
    pattern = ""
    for part in re.split(f"({'|'.join(VARYING)})", line.strip()):
        pattern += next((found for varying, found in VARYING.items() if re.fullmatch(varying, part)), re.escape(part))
    return pattern


def missing_line(shown: tuple[str, ...], output: str) -> str | None:
    """The first line of the page that the output lacks, in this order; None if it has all of them. A line "..." is any number of lines."""
    lines = iter(output.splitlines())
    for wanted in shown:
        if wanted.strip() in ("", "..."):
            continue
        pattern = re.compile(pattern_of(wanted))
        if not any(pattern.fullmatch(line.strip()) for line in lines):
            return wanted
    return None

