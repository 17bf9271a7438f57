# SPDX-License-Identifier: Apache-2.0
"""The commands of the pages, as far as a berthd on a host of files can answer them. tests/vm/test_docs.py has a booted host.

BERTHCTL and BERTHD name the programs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from examples import EXAMPLES, TUTORIAL, Left, Run, example_of
from filehost import FileHost
from shown import ROOT, Shown, configurations, mentions, of_page, pages, shown
from tutorial import is_reading, run_text
from world import BACKUP, CONTAINER, FILES, METRICS, NGINX, missing_line, other_programs, pattern_of, rules, script

BERTHCTL, BERTHD = (Path(os.environ[name]).resolve() for name in ("BERTHCTL", "BERTHD"))
COMMANDS = list({command.text: command for command in reversed(shown()) if command.page != TUTORIAL}.values())[::-1]
WORKLOADS = (f"system.slice/{NGINX}", f"system.slice/{BACKUP}", CONTAINER)


def runs_here(command: Shown) -> bool:
    example = example_of(command.text)
    return isinstance(example, Run) and not example.booted and not example.sources


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileHost]:
    root = tmp_path_factory.mktemp("h")
    made = FileHost(root, BERTHCTL, BERTHD, f'mode = "enforce"\n{rules()}\n[metrics]\nlisten = "{root}/run/metrics.sock"\n')
    for workload in WORKLOADS:
        made.files.add_group(workload)
    made.start()
    try:
        made.wait_for(f"berthctl log -n 20 | grep -q '{NGINX} now runs on'", "the first pins")
        (root / "files").mkdir()
        prepared = made.run(f"cd files\n{FILES}")
        assert prepared.returncode == 0, prepared
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize("command", filter(runs_here, COMMANDS), ids=lambda command: f"{command.place} {command.text}")
def test_command(command: Shown, host: FileHost) -> None:
    example = EXAMPLES[command.text]
    assert isinstance(example, Run)
    for program in other_programs(command.text):
        if not shutil.which(program):
            pytest.skip(f"there is no {program} here")
    body = script(command.text, example, str(host.root / "files"))
    ran = host.run(body.replace(METRICS.rsplit("/", 1)[0], str(host.runtime)))
    assert ran.returncode == example.status, f"{ran.stdout}\n{ran.stderr}\n{(host.root / 'log').read_text()}"
    for pattern in example.shows:
        assert re.search(pattern, ran.stdout, re.M), f"no {pattern} in\n{ran.stdout}\n{ran.stderr}"


@pytest.mark.parametrize("command", [c for c in COMMANDS if getattr(example_of(c.text), "sources", False)], ids=lambda command: command.text)
def test_output_is_that_of_the_page(command: Shown) -> None:
    environment = {**os.environ, "PATH": f"{BERTHCTL.parent}:{os.environ['PATH']}", "TZ": "UTC"}
    ran = subprocess.run(["bash", "-c", command.text], text=True, capture_output=True, check=False, cwd=ROOT, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == list(command.output)


def test_each_command_is_run_or_left_out_for_a_reason() -> None:
    unknown = [f"{command.place}: {command.text}" for command in COMMANDS if example_of(command.text) is None]
    assert not unknown, "tests/docs/examples.py lacks:\n" + "\n".join(unknown)


def test_no_example_is_left_over() -> None:
    assert set(EXAMPLES) - {command.text for command in COMMANDS} == set()


def test_most_commands_of_berth_are_run() -> None:
    ours = [command.text for command in COMMANDS if re.match(r"(ssh \S+ )?(berthctl|berthd)\b", command.text)]
    assert [text for text in ours if isinstance(example_of(text), Left)] == []


@pytest.mark.parametrize("mention", mentions(), ids=lambda mention: f"{mention.place} {mention.text}")
def test_command_that_a_sentence_names_exists(mention: Shown) -> None:
    program, *words = mention.text.split(" | ")[0].split()
    asked = [word for word in words[:1] if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")] if program == "berthctl" else []
    told = subprocess.run(
        [BERTHCTL if program == "berthctl" else BERTHD, *asked, "--help"], text=True, capture_output=True, check=False
    )
    assert told.returncode == 0, told
    known = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", told.stdout) + ["--json", "--help", "--no-pager"]
    assert [word for word in words if word.startswith("-") and word.split("=")[0] not in known] == []


@pytest.mark.parametrize("block", configurations(), ids=lambda block: block.place)
def test_configuration_of_a_page_is_valid(block: Shown) -> None:
    ran = subprocess.run([BERTHCTL, "check-config", "-"], input=block.text, text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


# Links


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings, and those that a page sets itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", [page for page in pages() if page.suffix == ".md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


# Messages

TROUBLESHOOTING = ROOT / "docs/troubleshooting.md"
MODULES = ("cgroup", "cli", "config", "daemon", "os", "policies", "replay", "topology")


def messages_of_tables() -> list[str]:
    """The texts of several words in the first column, as far as they are no commands."""
    cells = [line.split("|")[1] for line in TROUBLESHOOTING.read_text().splitlines() if line.startswith("|")]
    texts = [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]
    return [text for text in texts if " " in text and not text.startswith(("berthctl ", "list --", "LLC "))]


def test_message_of_the_troubleshooting_page_is_one_of_berth() -> None:
    sources = "".join(file.read_text() for module in MODULES for file in (ROOT / module).rglob("*.cpp"))
    # The compiler joins literals that follow each other.
    sources = re.sub(r'"\s*"', "", sources)
    messages = messages_of_tables()
    assert len(messages) > 15
    for message in messages:
        for part in message.split("..."):
            assert part in sources, f"{message}: there is no {part!r} in the sources"


# The tutorial

STEPS = of_page(ROOT / TUTORIAL)
# They read the services and the configuration of the machine that tests.
OF_THIS_VERY_HOST = ("berthctl suggest > /etc/berth/berth.toml", "berthctl check-config")
PROPOSED = "grep -v '^#' /etc/berth/berth.toml"


def stand_in(host: FileHost, text: str) -> None:
    """What systemd and the host's own configuration would do for the next step."""
    (proposed,) = ("\n".join(step.output) + "\n" for step in STEPS if step.text == PROPOSED)
    if text == "systemctl start nginx":
        host.files.add_group(f"system.slice/{NGINX}")
    elif text.startswith("systemd-run "):
        (unit,) = re.findall(r"--unit=(\S+)", text)
        host.files.add_group(f"system.slice/{unit}.service")
    elif text == "berthctl suggest > /etc/berth/berth.toml":
        host.configure(proposed)
    elif text.startswith("sed -i "):
        (mode,) = re.findall(r'mode = "(\w+)"', text)
        host.configure(proposed.replace('"observe"', f'"{mode}"'))


def test_tutorial_shows_what_berthctl_prints(tmp_path: Path) -> None:
    host = FileHost(tmp_path, BERTHCTL, BERTHD, "")
    host.start()
    try:
        for command in STEPS:
            stand_in(host, command.text)
            if command.text.startswith("berthctl ") and command.text not in OF_THIS_VERY_HOST:
                follow(host, command)
    finally:
        host.stop()


def follow(host: FileHost, command: Shown) -> None:
    """berth follows the host by ticks: what a page shows comes soon, not at once."""
    said: list[subprocess.CompletedProcess[str]] = []

    def as_shown() -> bool:
        said[:] = [host.run(run_text(command.text))]
        return said[0].returncode == 0 and missing_line(command.output, said[0].stdout) is None

    try:
        host.wait_until(as_shown if is_reading(command.text) else lambda: as_shown() or True, command.text)
    except AssertionError:
        pass
    line = missing_line(command.output, said[0].stdout)
    problem = f"{command.place}: {command.text}\n{line and pattern_of(line)}\n{said[0].stdout}\n{said[0].stderr}"
    assert said[0].returncode == 0 and line is None, problem
