# SPDX-License-Identifier: Apache-2.0
"""One running guest: its life, commands in it, files to and from it."""

from __future__ import annotations

import fcntl
import json
import math
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from types import TracebackType
from typing import IO, Any, TypeVar

from . import booted
from .agent import COMMAND, Agent
from .booted import Preparation, ensure_booted
from .emulator import ensure_emulator
from .errors import CommandFailed, GuestError, GuestSilent, tail
from .image import Image, ensure_image
from .machine import Topology, command_line, death_notice, is_qemu, qmp, spawn

# Deadlines only end a hopeless wait. They are for a machine of a quarter of the usual speed.
PATIENCE = float(os.environ.get("BERTH_PATIENCE") or "4")
BOOT_DEADLINE = 120.0 * PATIENCE
COMMAND_TIMEOUT = 120.0 * PATIENCE
COPY_TIMEOUT = 300.0 * PATIENCE
# What the connection may take beside the command's own time.
CONNECTION = 10.0 * PATIENCE
# A command that takes longer than this may run in a guest that hangs.
SUSPICION = 120.0
# A guest that does not greet for so long hangs: one with a hundred busy processes takes a minute.
SILENCE = 60.0 * PATIENCE
# A kernel that prints nothing for so long while it boots hangs.
BOOT_SILENCE = 30.0 * PATIENCE
# Of poll()'s loop in the guest, at its deadline.
IN_VAIN = 113

Command = str | Sequence[str]
T = TypeVar("T")


def state_dir(name: str) -> Path:
    """Where a guest of this name keeps its sockets and logs; short, for sockets' paths are limited."""
    if own := os.environ.get("BERTH_VM_STATE"):
        return Path(own).absolute() / name
    runtime = os.environ.get("XDG_RUNTIME_DIR") or ("/run" if os.getuid() == 0 else f"/tmp/{os.getuid()}")
    return Path(runtime) / "berth-vm" / name


class Guest:
    """A booted guest. Guests of different names run side by side."""

    def __init__(self, state: Path) -> None:
        self.state = state
        facts = json.loads((state / "guest.json").read_text())
        self.pid: int = facts["pid"]
        self.port: int = facts["port"]
        self.topology = Topology(**facts["topology"])
        self.image = Image(Path(facts["image"]))
        self.kernel_arguments: str = facts["kernel_arguments"]
        self.disks = [Path(disk) for disk in facts.get("disks", ())]
        self.silent = False  # found hung by run()
        self._process: subprocess.Popen[bytes] | None = None
        self._agent: Agent | None = None
        self._preparation: Preparation | None = None

    # Life

    @classmethod
    def boot(
        cls,
        name: str = "default",
        *,
        topology: Topology = Topology(),
        variant: str = "6.1",
        kernel_arguments: str = "",
        disks: Sequence[Path] = (),
        preparation: Preparation | None = None,
        owned: bool = True,
        cold: bool = False,
        deadline: float = BOOT_DEADLINE,
    ) -> Guest:
        """A guest in which systemd has started everything; `disks`: further ones, to be read; `owned`: ends with this process.

        It goes on from a state that the cache keeps, which is made first where the cache lacks it: by a boot, and a preparation. `cold`: it
        boots.
        """
        image, emulator = ensure_image(variant), ensure_emulator()
        facts = {
            "image": str(image.path),
            "topology": vars(topology),
            "kernel_arguments": kernel_arguments,
            "disks": [str(disk) for disk in disks],
        }

        def start(name: str, owned: bool, more: Sequence[str] = (), disk: Path | None = None, *, keeps: bool = False) -> Guest:
            state = state_dir(name)
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
            command = [*command_line(emulator, image, topology, state, kernel_arguments, disks, disk, keeps=keeps), *more]
            with (state / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if running(state):
                    raise GuestError(f"guest {name!r} is already running; see {state}")
                try:
                    return cls._start(state, command, facts, owned, deadline)
                except GuestSilent as error:
                    # Emulated kernels were seen to hang at boot, too.
                    print(f"the guest hung while it booted; booting it again\n{error}", file=sys.stderr, flush=True)
                    return cls._start(state, command, facts, owned, deadline)

        def save(disk: Path, memory: Path) -> None:
            with start(f"boot-{os.getpid()}", True, disk=disk, keeps=True) as guest:
                if preparation:
                    preparation.run(guest)
                guest._disconnect()
                with qmp(guest.state / "qmp") as control:
                    booted.save(control, memory)

        if cold:
            return start(name, owned)
        kept = ensure_booted(emulator, image, topology, kernel_arguments, disks, preparation, save)
        guest = start(name, owned, ["-incoming", f"file:{kept.memory}"], kept.disk)
        guest._preparation = preparation
        if not preparation:
            # Its clock shows when its state was saved.
            guest.run(f"date --set=@{time.time():.3f}")
        return guest

    @classmethod
    def _start(cls, state: Path, command: list[str], facts: dict[str, Any], owned: bool, deadline: float) -> Guest:
        """Starts QEMU and waits until the guest is ready; GuestSilent where the kernel hangs on the way."""
        clear(state)
        process = spawn(command, state / "qemu.log", owned=owned)
        try:
            port = ask_port(state, process)
            (state / "guest.json").write_text(json.dumps({**facts, "pid": process.pid, "port": port}))
            guest = cls(state)
            guest._process = process
            if "-incoming" in command:
                with qmp(state / "qmp") as control:
                    booted.go_on(control, deadline)
            guest.wait_ready(deadline)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return guest

    @classmethod
    def attach(cls, name: str = "default") -> Guest:
        """The guest that another process booted."""
        if guest := cls.find(name):
            return guest
        raise GuestError(f"guest {name!r} is not running")

    @classmethod
    def find(cls, name: str) -> Guest | None:
        state = state_dir(name)
        return cls(state) if running(state) else None

    def wait_ready(self, deadline: float = BOOT_DEADLINE) -> None:
        until = time.monotonic() + deadline
        self._connect(until)
        seconds = max(1, int(until - time.monotonic()))
        self.run(f"timeout {seconds} systemctl is-system-running --wait", check=False, timeout=seconds + 5)

    def power_cycle(self, deadline: float = BOOT_DEADLINE) -> None:
        """As if the power had failed and come back; what reached the disk stays."""
        self._disconnect()
        # A guest that restarts by itself has failed (-no-reboot); this one is
        # asked to, and its firmware resets a second time before it boots.
        with qmp(self.state / "qmp") as control:
            control.execute("set-action", reboot="reset")
            control.execute("system_reset")
        self.wait_ready(deadline)
        with qmp(self.state / "qmp") as control:
            control.execute("set-action", reboot="shutdown")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Its processors and clocks stand meanwhile: an idle guest takes a fifth of a core. Its time of day is late then."""
        self._disconnect()
        with qmp(self.state / "qmp") as control:
            control.execute("stop")
        yield
        with qmp(self.state / "qmp") as control:
            control.execute("cont")
        self._connect(time.monotonic() + BOOT_DEADLINE)

    def replace(self) -> None:
        """Ends a guest that hung, and boots another in its place: nothing of what was installed in it is there."""
        name, variant = self.state.name, self.image.path.name.rsplit("-", 1)[0]
        self.down()
        booted = Guest.boot(
            name,
            topology=self.topology,
            variant=variant,
            kernel_arguments=self.kernel_arguments,
            disks=self.disks,
            preparation=self._preparation,
        )
        self.__dict__.update(booted.__dict__)

    def alive(self) -> bool:
        if self._process is not None:
            return self._process.poll() is None
        return is_qemu(self.pid, self.state)

    def down(self, *, forget: bool = False) -> None:
        """Ends the guest at once: its disk is thrown away, so there is nothing to shut down for.

        Its logs stay until a guest of that name boots again; `forget` removes them.
        """
        self._disconnect()
        if self.alive():
            os.kill(self.pid, signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        else:
            wait_until(lambda: not self.alive(), 10.0 * PATIENCE, "QEMU to end")
        (self.state / "guest.json").unlink(missing_ok=True)
        if forget:
            shutil.rmtree(self.state)

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down(forget=kind is None)

    # Commands

    def run(
        self,
        command: Command,
        *,
        check: bool = True,
        timeout: float = COMMAND_TIMEOUT,
        input: str = "",
        user: str | None = None,
    ) -> CompletedProcess[str]:
        """Runs a command (a string is for the shell) as root or `user`, and returns its output as text."""
        text = as_text(command, user)
        if self.silent:
            raise GuestSilent(f"the guest has hung before: {text}")
        if self._agent is None or self._agent.lost:
            self._agent = Agent(self.ssh(COMMAND))
        answer = self._agent.ask(text, input, timeout)
        until = time.monotonic() + timeout + CONNECTION
        # A guest that hangs meanwhile is found earlier.
        while not answer.there.wait(max(0.1, min(until - time.monotonic(), SUSPICION))):
            self.silent = self.alive() and not greets(self.port, SILENCE)
            message = f"no end within {timeout + CONNECTION:g} s of: {text}"
            if self.silent:
                raise GuestSilent(f"{message}\nand the guest is silent\n{tail(self.state / 'console.log', 15)}")
            if time.monotonic() >= until:
                raise self._failure(message)
        return self._judge(CompletedProcess(text, answer.status, answer.output, answer.errors), check, timeout)

    def stream(self, command: Command, *, user: str | None = None) -> int:
        """Runs a command with this process's own input and output; returns its status. GuestSilent where the guest hung."""
        words = self.ssh(as_text(command, user))
        if sys.stdin.isatty() and sys.stdout.isatty():
            words.insert(1, "-t")
        status = subprocess.run(words, check=False).returncode
        if status == 255 and not self.alive():
            raise GuestError(death_notice(self.state))
        if status == 255 and not greets(self.port, SILENCE):
            raise GuestSilent(f"the guest is silent\n{tail(self.state / 'console.log', 5)}")
        return status

    def ssh(self, command: str, timeout: float | None = None) -> list[str]:
        """The words that run `command` in the guest, where it is killed after `timeout` seconds."""
        if timeout is not None:
            # ssh's end does not end the command, and a left-over one disturbs the next test.
            command = f"exec timeout --kill-after=5 {timeout:g} sh -c {shlex.quote(command)}"
        return [*self._ssh_options(), "berth-guest", command]

    def poll(
        self, probe: Command | Callable[[], T], deadline: float = 30.0, *, interval: float = 0.2, what: str | Callable[[], str] = ""
    ) -> T | CompletedProcess[str]:
        """Tries until `probe` returns something true (a command: status 0), which is returned.

        `what`: for the message of a failure; a function is called then, so that it tells the last state.

        The guest repeats a command by itself, which takes a fraction of a connection for each attempt. PATIENCE
        multiplies the deadline.
        """
        deadline *= PATIENCE
        if callable(probe):
            return wait_until(probe, deadline, what or "the condition", interval, self._failure)
        command = as_text(probe)
        # In one shell of the guest: its clock is read, and the time told, without a program.
        loop = (
            "read now rest < /proc/uptime; end=$((${now%.*} + " + str(math.ceil(deadline)) + ")); "
            f"until said=$( {{ {command}\n}} 2>&1 ); do read now rest < /proc/uptime; "
            f'[ ${{now%.*}} -lt $end ] || {{ echo "$said"; exit {IN_VAIN}; }}; sleep {interval:g}; done; printf "%s\\n" "$said"'
        )
        done = self.run(loop, check=False, timeout=deadline + COMMAND_TIMEOUT)
        if done.returncode == IN_VAIN:
            raise self._failure(f"waited {deadline:g} s in vain for: {text_of(what) or command}\nlast: {done.stdout}")
        return self._judge(done, True, deadline)

    # Files

    def read_file(self, path: str) -> str:
        return self.run(["cat", "--", path]).stdout

    def write_file(self, path: str, text: str, mode: int | None = None) -> None:
        """Writes in place, as files of cgroupfs need it; makes the directories above."""
        quoted = shlex.quote(path)
        parent = shlex.quote(os.path.dirname(path) or ".")
        chmod = f" && chmod {mode:o} {quoted}" if mode is not None else ""
        self.run(f"mkdir -p {parent} && cat > {quoted}{chmod}", input=text)

    def push(self, source: Path, target: str, *, timeout: float = COPY_TIMEOUT) -> None:
        """A file becomes `target`; of a directory, the contents go into `target`, owned by root."""
        quoted = shlex.quote(target)
        pack = ["tar", "--owner=0", "--group=0", "--numeric-owner", "-cf", "-"]
        if source.is_dir():
            # A guest's /lib is a link, and stays one when a staging tree has a directory of that name.
            unpack = f"mkdir -p {quoted} && tar -C {quoted} --keep-directory-symlink --no-overwrite-dir -xf -"
            self._pipe([*pack, "-C", str(source), "."], self.ssh(unpack, timeout), timeout)
        elif source.is_file():
            parent = shlex.quote(os.path.dirname(target) or ".")
            unpack = f"mkdir -p {parent} && tar -xOf - > {quoted} && chmod {source.stat().st_mode & 0o777:o} {quoted}"
            self._pipe([*pack, "-C", str(source.parent), source.name], self.ssh(unpack, timeout), timeout)
        else:
            raise GuestError(f"no such file or directory: {source}")

    def pull(self, source: str, target: Path, *, timeout: float = COPY_TIMEOUT) -> None:
        """The other way round: a file becomes `target`, a directory's contents go into it."""
        quoted = shlex.quote(source)
        unpack = ["tar", "--no-same-owner", "-xf", "-"]
        if self.run(["test", "-d", source], check=False).returncode == 0:
            target.mkdir(parents=True, exist_ok=True)
            self._pipe(self.ssh(f"tar -C {quoted} -cf - .", timeout), [*unpack, "-C", str(target)], timeout)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                self._pipe(self.ssh(f"cat -- {quoted}", timeout), ["cat"], timeout, file)

    def install(self, staging: Path) -> None:
        """Unpacks a `DESTDIR` over the guest and makes the system take notice, as a package would.

        No directory is packed: tar closes one that is there to all users but root while it unpacks into it.
        """
        pack = 'cd "$1" && find . ! -type d -print0 | tar --null --no-recursion -T - --owner=0 --group=0 --numeric-owner -cf -'
        self._pipe(["sh", "-c", pack, "sh", str(staging)], self.ssh("umask 022; tar -C / -xf -", COPY_TIMEOUT), COPY_TIMEOUT)
        self.run(
            "systemd-sysusers && systemd-tmpfiles --create && journalctl --update-catalog && ldconfig && systemctl daemon-reload"
            " && systemctl reload dbus && { systemctl try-restart polkit || true; }"
        )

    # Within

    def _pipe(
        self, source: list[str], sink: list[str], timeout: float, output: IO[bytes] | int | None = None
    ) -> None:
        with subprocess.Popen(source, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as writer:
            try:
                result = subprocess.run(
                    sink, stdin=writer.stdout, stdout=output, stderr=subprocess.PIPE, timeout=timeout + CONNECTION, check=False
                )
                if writer.stdout:
                    writer.stdout.close()
                status = writer.wait(timeout=timeout)
            except subprocess.TimeoutExpired as error:
                writer.kill()
                raise self._failure(f"no end within {timeout:g} s of: {source} | {sink}") from error
        if status or result.returncode:
            message = result.stderr.decode(errors="replace")
            raise self._failure(f"{source} ({status}) | {sink} ({result.returncode}): {message}")

    def _judge(self, result: CompletedProcess[str], check: bool, timeout: float) -> CompletedProcess[str]:
        if result.returncode == 255 and not self.alive():
            raise GuestError(death_notice(self.state))
        # timeout(1) says 124, and 137 where it had to kill.
        if result.returncode == 124:
            raise self._failure(f"killed after {timeout:g} s: {result.args}\n{result.stdout}\n{result.stderr}")
        if check and result.returncode != 0:
            raise CommandFailed(result)
        return result

    def _failure(self, message: str) -> GuestError:
        return GuestError(f"{message}\n{tail(self.state / 'console.log', 15)}")

    def _ssh_options(self) -> list[str]:
        options = {
            "BatchMode": "yes",
            # Four times faster than the default on emulated processors.
            "Ciphers": "aes128-gcm@openssh.com",
            "ControlPath": self.state / "ssh",
            "HostName": "127.0.0.1",
            "HostKeyAlias": "berth-guest",
            "HostKeyAlgorithms": "ssh-ed25519",
            "IdentitiesOnly": "yes",
            "IdentityFile": self.image.key,
            "LogLevel": "ERROR",
            "Port": self.port,
            "ServerAliveInterval": "30",
            "ServerAliveCountMax": "10",
            "StrictHostKeyChecking": "yes",
            "User": "root",
            "UserKnownHostsFile": self.image.known_hosts,
        }
        return ["ssh", "-F", "none", *(f"-o{name}={value}" for name, value in options.items())]

    def _connect(self, until: float) -> None:
        """One connection for all commands: a handshake takes the emulated processors long."""
        master = [*self._ssh_options(), "-oControlMaster=yes", "-oConnectTimeout=60", "-f", "-N", "berth-guest"]
        log = self.state / "ssh.log"
        begun = time.time()
        patience = 1.0
        while True:
            if greets(self.port, patience):
                with log.open("wb") as output:
                    result = subprocess.run(
                        master, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
                    )
                if result.returncode == 0:
                    return
            if not self.alive():
                raise GuestError(death_notice(self.state))
            if time.monotonic() > until:
                raise self._failure(f"the guest does not answer\n{tail(log, 5)}")
            if time.time() - max(begun, last_change(self.state / "console.log")) > BOOT_SILENCE:
                raise GuestSilent(f"nothing on the console for {BOOT_SILENCE:g} s\n{tail(self.state / 'console.log', 5)}")
            patience = min(patience * 1.2, 15.0)
            time.sleep(0.2)

    def _disconnect(self) -> None:
        if self._agent is not None:
            self._agent.close()
            self._agent = None
        subprocess.run(
            [*self._ssh_options(), "-O", "exit", "berth-guest"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )


def last_change(log: Path) -> float:
    """The time of a log's last line; 0 where there is none."""
    try:
        return log.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def greets(port: int, patience: float) -> bool:
    """Whether sshd answers. ssh itself would wait long on a connection that a guest still booting never saw."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def as_text(command: Command, user: str | None = None) -> str:
    text = command if isinstance(command, str) else shlex.join(command)
    return f"exec runuser -u {shlex.quote(user)} -- sh -c {shlex.quote(text)}" if user else text


def text_of(what: str | Callable[[], str]) -> str:
    return what() if callable(what) else what


def wait_until(
    probe: Callable[[], T | None],
    deadline: float,
    what: str | Callable[[], str],
    interval: float = 0.1,
    failure: Callable[[str], GuestError] = GuestError,
) -> T:
    until = time.monotonic() + deadline
    while True:
        if value := probe():
            return value
        if time.monotonic() > until:
            raise failure(f"waited {deadline:g} s in vain for: {text_of(what)}")
        time.sleep(interval)


def running(state: Path) -> bool:
    try:
        pid = json.loads((state / "guest.json").read_text())["pid"]
    except (OSError, ValueError):
        return False
    return is_qemu(pid, state)


def clear(state: Path) -> None:
    """Removes what a guest that is gone left behind."""
    for path in state.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def ask_port(state: Path, process: subprocess.Popen[bytes]) -> int:
    def attempt() -> int | None:
        if process.poll() is not None:
            raise GuestError(death_notice(state))
        try:
            with qmp(state / "qmp") as control:
                return control.ssh_port()
        except (FileNotFoundError, ConnectionRefusedError):
            return None

    return wait_until(attempt, 30.0 * PATIENCE, "QEMU's control socket")
