# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a guest through one process that stays there.

Each command of its own through sshd starts four programs before it begins. On emulated processors that takes longer than most commands.
"""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
import threading
from dataclasses import dataclass, field

from .process import dies_with_parent

# As of an ssh whose connection is lost.
LOST = 255

# What runs in the guest. It reads a request a line and answers each when its command ends, in any order. Like timeout(1), it gives a
# command that is late five seconds between SIGTERM and SIGKILL, and says 124.
PROGRAM = """
import json, os, signal, subprocess, sys, threading
lock, running = threading.Lock(), set()
def end(child, number):
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass
def answer(request):
    child = subprocess.Popen(["sh", "-c", request["command"]], stdin=-1, stdout=-1, stderr=-1, start_new_session=True)
    running.add(child)
    said, status = (b"", b""), 124
    try:
        said = child.communicate(request["input"].encode(), request["timeout"])
        status = child.returncode if child.returncode >= 0 else 128 - child.returncode
    except subprocess.TimeoutExpired:
        for number in signal.SIGTERM, signal.SIGKILL:
            end(child, number)
            try:
                said = child.communicate(timeout=5)
                break
            except subprocess.TimeoutExpired:
                pass
    running.discard(child)
    texts = [text.decode(errors="replace") for text in said]
    with lock:
        print(json.dumps([request["id"], status, *texts]), flush=True)
for line in sys.stdin:
    threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
for child in list(running):
    end(child, signal.SIGKILL)
os._exit(0)
"""
COMMAND = f"exec python3 -u -c {shlex.quote(PROGRAM)}"


@dataclass
class Answer:
    """Of a command: its status, what it printed, and what it complained of."""

    status: int = LOST
    output: str = ""
    errors: str = "the connection to the guest was lost"
    there: threading.Event = field(default_factory=threading.Event)


class Agent:
    """`words`: the ssh command that runs COMMAND in the guest."""

    def __init__(self, words: list[str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=dies_with_parent()
        )
        self._lock = threading.Lock()
        self._ids = itertools.count()
        self._asked: dict[int, Answer] = {}
        self._lost = False
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, command: str, input: str, timeout: float) -> Answer:
        """Begins with a command; its answer will be there when it ends or after `timeout` seconds of the guest, or the connection is lost."""
        answer, number = Answer(), next(self._ids)
        request = json.dumps({"id": number, "command": command, "input": input, "timeout": timeout})
        with self._lock:
            if not self._lost:
                self._asked[number] = answer
                try:
                    assert self._process.stdin
                    self._process.stdin.write(request + "\n")
                    self._process.stdin.flush()
                    return answer
                except OSError:
                    del self._asked[number]
        answer.there.set()
        return answer

    @property
    def lost(self) -> bool:
        return self._lost

    def close(self) -> None:
        """Ends what still runs."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            number, status, output, errors = json.loads(line)
            with self._lock:
                answer = self._asked.pop(number)
            answer.status, answer.output, answer.errors = status, output, errors
            answer.there.set()
        with self._lock:
            self._lost = True
            left, self._asked = list(self._asked.values()), {}
        for answer in left:
            answer.there.set()
