# SPDX-License-Identifier: Apache-2.0
"""One run of tools/test: its children, its logs, and what came of each part."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from .green import Count, Green
from .parts import Part
from .tree import Inputs, Tree

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "build/test"
COUNTED = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
BROKEN = re.compile(r"^FAILED  (.*)", re.M)
LEFT_S = 5
SHELL = 'set -uo pipefail; . tools/lib.sh; . tools/testing/parts.sh; "$@"'


def say(text: str) -> None:
    print(f"\n==> {text}", flush=True)


@dataclass(frozen=True)
class Outcome:
    count: Count
    seconds: float
    said: str


class Run:
    """Ends its children when it ends. Results are kept in `green`, and those that are there already count if `keeps`."""

    def __init__(self, green: Green, keeps: bool = True) -> None:
        self.began = time.monotonic()
        self.green = green
        self.keeps = keeps
        self.outcomes: dict[str, Outcome] = {}
        self._unchanged = Count()
        self._sources: frozenset[str] | None = None  # as the build found them
        self._children: list[subprocess.Popen[str]] = []
        self._starting = threading.Lock()
        self._ends = False
        self._beside: dict[str, threading.Thread] = {}
        REPORTS.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Run:
        """Two runs of one checkout would take each other's programs and reports."""
        self._lock = (REPORTS / "lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"test: another run of this checkout goes on ({REPORTS}/lock); wait for its end, or run in another clone")
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        with self._starting:
            self._ends = True
        running = [child for child in self._children if child.poll() is None]
        for child in running:
            os.killpg(child.pid, signal.SIGTERM)
        for child in running:
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
        self._lock.close()

    def minutes(self) -> float:
        return (time.monotonic() - self.began) / 60

    # Steps before the parts

    def install(self, lists: Iterable[str]) -> None:
        self._step("packages", "install_packages", *(f"tools/packages-{name}" for name in lists))

    def build(self, beside: Sequence[str] = ()) -> None:
        """`beside`: functions of parts.sh that make something else meanwhile. The part that needs it says what went wrong."""
        say("building")
        self._sources = Tree(ROOT).files("*").lines
        others = [threading.Thread(target=self.shell, args=([name], name), kwargs={"loud": False}, daemon=True) for name in beside]
        for other in others:
            other.start()
        self._step("build", "build_with_tests")
        for other in others:
            other.join()

    def _step(self, name: str, *command: str) -> None:
        started = time.monotonic()
        status, _ = self.shell(command, name)
        if status:
            sys.exit(f"test: {name} failed; the log is {REPORTS / name}.log")
        self.outcomes[name] = Outcome(Count(), time.monotonic() - started, "")

    # Parts

    def part(self, part: Part) -> None:
        """Runs what changed since it was green. Of a part that runs beside others, it waits for the end and prints what that said."""
        say(part.what)
        if thread := self._beside.get(part.name):
            thread.join()
            if part.name not in self.outcomes:
                self.outcomes[part.name] = Outcome(Count(failed=1), 0, "broke off before it began")
                return
            print((REPORTS / f"{part.name}.log").read_text(errors="replace"), flush=True)
        else:
            self._run(part, loud=True)

    def beside(self, parts: Sequence[Part]) -> None:
        """Runs them from now on, one after the other, beside what follows."""

        def run() -> None:
            for part in parts:
                try:
                    self._run(part, loud=False)
                except Exception as error:  # it is a failure of the part, and no thread tells of it otherwise
                    (REPORTS / f"{part.name}.log").write_text(f"{''.join(traceback.format_exception(error))}FAILED  {part.name}\n")
                    self.outcomes[part.name] = Outcome(Count(failed=1), 0, f"broke off: {error}")

        thread = threading.Thread(target=run, daemon=True)
        self._beside |= {part.name: thread for part in parts}
        thread.start()

    def failed(self) -> bool:
        return any(outcome.count.failed for outcome in self.outcomes.values())

    def skip(self, part: Part, reason: str) -> None:
        say(f"{part.name}: skipped, {reason}")
        self.outcomes[part.name] = Outcome(Count(skipped=1), 0, f"skipped: {reason}")

    def _run(self, part: Part, *, loud: bool) -> None:
        started = time.monotonic()
        items = items_of(part)
        kept = {name: count for name, one in items.items() if self.keeps and (count := self.green.find(f"{part.name}-{name}", one.hash()))}
        changed = [name for name in items if name not in kept]
        count, said, head = sum(kept.values(), Count()), [], ""
        self._unchanged += count
        if kept:
            said.append(f"{len(kept)} of {len(items)} unchanged" if changed else f"unchanged ({hash_of(items)})")
            head = f"unchanged since a green run ({hash_of(items)}): {f'{len(kept)} of {len(items)}, ' if len(items) > 1 else ''}{count}\n"
        report = REPORTS / f"{part.name}.xml"
        report.unlink(missing_ok=True)
        status, text = self.shell([f"part_{part.name}", *(changed if part.results else ())], part.name, loud=loud, head=head) if changed else (0, head)
        if changed:
            found = counted(text)
            if found is None or (status and not found.failed):
                # A part that broke off before it counted everything is a failure of its own.
                found = (found or Count()) + Count(failed=1)
                said.append(f"broke off, see {REPORTS / part.name}.log")
            count += found
            if not part.results:
                results = {name: found for name in changed}
            else:
                results = part.results(report) if report.exists() else {}
            after = items_of(part)
            for name in changed:
                # What was changed since the build, or meanwhile, was not tested.
                if after.get(name) == items[name] and self._is_as_built(items[name]):
                    self.green.keep(f"{part.name}-{name}", items[name].hash(), results.get(name, Count()), time.monotonic() - started)
        else:
            (REPORTS / f"{part.name}.log").write_text(head)
            if loud:
                print(head, end="", flush=True)
        beside = "" if loud else " (beside others)"
        self.outcomes[part.name] = Outcome(count, time.monotonic() - started, ", ".join([str(count), *said]) + beside)

    def _is_as_built(self, inputs: Inputs) -> bool:
        return self._sources is None or all(line in self._sources for line in inputs.lines if line.startswith("file "))

    def finish(self) -> int:
        """The summary. Each failure by name, as what was printed of it may be hours of output away."""
        say("summary")
        for name, outcome in self.outcomes.items():
            print(f"{name:<12} {outcome.seconds:4.0f} s  {outcome.said}".rstrip())
        for name in self.outcomes:
            log = REPORTS / f"{name}.log"
            for broken in BROKEN.findall(log.read_text(errors="replace")) if log.exists() and self.outcomes[name].count.failed else ():
                print(f"failed in {name}: {broken}")
        self.green.forget_old()
        total = sum((outcome.count for outcome in self.outcomes.values()), Count())
        if self._unchanged.passed:
            print(f"{self._unchanged.passed} of those that passed did so in an earlier run of exactly the same inputs (--all runs them again)")
        print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
        return 0 if total.green else 1

    # Children

    def shell(self, command: Sequence[str], log: str, *, loud: bool = True, head: str = "") -> tuple[int, str]:
        """Runs a function of parts.sh or lib.sh. Returns its status, and what it printed, which build/test/LOG.log keeps below `head`.
        Processes that it leaves end with it."""
        with self._starting:
            if self._ends:
                raise RuntimeError("the run ends")
            child = subprocess.Popen(
                ["bash", "-c", SHELL, "test", *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", start_new_session=True,
            )
            self._children.append(child)
        lines = [head]

        def read() -> None:
            with (REPORTS / f"{log}.log").open("w") as file:
                file.write(head)
                if loud:
                    print(head, end="", flush=True)
                for line in child.stdout or ():
                    lines.append(line)
                    file.write(line)
                    file.flush()
                    if loud:
                        print(line, end="", flush=True)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        status = child.wait()
        reader.join(LEFT_S)
        if reader.is_alive():
            # Something that it started still has its output.
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            reader.join(LEFT_S)
        return status, "".join(lines)


def items_of(part: Part) -> dict[str, Inputs]:
    """A part without items is one."""
    found = part.inputs(Tree(ROOT))
    return found if isinstance(found, dict) else {"all": found}


def hash_of(items: dict[str, Inputs]) -> str:
    return Inputs(frozenset(f"{name} {one.hash()}" for name, one in items.items())).hash()


def counted(text: str) -> Count | None:
    """By the last line that counts."""
    found = COUNTED.findall(text)
    return Count(*(int(number or 0) for number in found[-1])) if found else None
