# SPDX-License-Identifier: Apache-2.0
"""QEMU: the command line of the emulated host, its process, and its control socket."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from .emulator import Emulator
from .errors import GuestError, tail
from .image import Image
from .process import dies_with_parent

QMP_TIMEOUT = 20.0


# Together, these let a guest start a program in three fifths of the time.
CPU = (
    # Linux believes in SMT for some vendors only.
    "vendor=GenuineIntel",
    # Every miss of the emulated TLB walks the page table: four levels instead of five.
    "la57=off",
    # Each system call changes and checks what these guard, which is dear where it is emulated.
    "smap=off", "smep=off", "umip=off", "pku=off",
    # With these Linux and libc clear and copy memory by one instruction, which is emulated byte by byte.
    "erms=off", "fsrm=off",
)


@dataclass(frozen=True)
class Topology:
    """Processors and memory; every socket has a level-3 cache of its own."""

    sockets: int = 2
    cores: int = 2
    threads: int = 2
    numa_nodes: int = 2
    memory_mib: int = 2048
    # A further node with memory alone, as a memory expander is.
    expander_mib: int = 0
    # The last node with processors has no memory of its own.
    bare_node: bool = False

    @property
    def cpus(self) -> int:
        return self.sockets * self.cores * self.threads

    def arguments(self) -> list[str]:
        nodes_with_memory = self.numa_nodes - (1 if self.bare_node else 0)
        if self.cpus % self.numa_nodes or nodes_with_memory < 1 or self.memory_mib % nodes_with_memory:
            raise GuestError(f"{self} does not divide evenly into NUMA nodes")
        smp = f"{self.cpus},sockets={self.sockets},cores={self.cores},threads={self.threads}"
        arguments = ["-smp", smp, "-m", f"{self.memory_mib + self.expander_mib}M"]
        cpus = self.cpus // self.numa_nodes
        memory = self.memory_mib // nodes_with_memory
        for node in range(self.numa_nodes):
            first, last = node * cpus, (node + 1) * cpus - 1
            described = f"node,nodeid={node},cpus={first}-{last}"
            if node < nodes_with_memory:
                arguments += ["-object", f"memory-backend-ram,id=m{node},size={memory}M"]
                described += f",memdev=m{node}"
            arguments += ["-numa", described]
        if self.expander_mib:
            node = self.numa_nodes
            arguments += ["-object", f"memory-backend-ram,id=m{node},size={self.expander_mib}M"]
            arguments += ["-numa", f"node,nodeid={node},memdev=m{node}"]
        return arguments


TOPOLOGIES = {
    "two-socket": Topology(),
    "two-socket-no-smt": Topology(threads=1),
    "one-socket": Topology(sockets=1, cores=4, threads=2, numa_nodes=1),
    "single": Topology(sockets=1, cores=1, threads=1, numa_nodes=1, memory_mib=1024),
    "small": Topology(cores=1, memory_mib=1024),
    # Nodes 0 and 1 are ordinary, 2 has processors alone, 3 memory alone.
    "odd-nodes": Topology(sockets=3, cores=3, threads=1, numa_nodes=3, expander_mib=256, bare_node=True),
    # For the six JVMs of a Spark cluster.
    "roomy": Topology(sockets=1, numa_nodes=1, memory_mib=4096),
}


def command_line(
    emulator: Emulator,
    image: Image,
    topology: Topology,
    state: Path,
    kernel_arguments: str,
    disks: Sequence[Path] = (),
    disk: Path | None = None,
    *,
    keeps: bool = False,
) -> list[str]:
    """`disks`: further ones, which guests only read. `disk`: in place of the image's; `keeps`: what the guest writes stays there."""
    append = (
        # An emulated timer may come too late for the kernel's check of it, which then panics.
        "root=/dev/vda console=ttyS0 loglevel=5 psi=1 net.ifnames=0 mitigations=off no_timer_check "
        # RCU looks for idle processors each tick. That is dear where they are emulated: a twelfth of the CPU time of a test.
        "rcutree.jiffies_till_first_fqs=5 rcutree.jiffies_till_next_fqs=5 "
        f"systemd.show_status=yes panic=-1 {kernel_arguments}"
    )
    return [
        *emulator.command(), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-machine", "q35",
        # Emulated also where /dev/kvm exists: nested virtualisation is too often there in name only.
        "-accel", "tcg,thread=multi",
        "-cpu", ",".join(["max", *CPU]),
        *topology.arguments(),
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", append.strip(),
        # Writes go to an unnamed temporary file: every boot starts from the same disk.
        "-drive", f"file={disk or image.disk},if=virtio,format=raw,snapshot={'off' if keeps else 'on'}",
        *(word for disk in disks for word in ("-drive", f"file={disk},if=virtio,format=raw,readonly=on")),
        # Port 0: the host's kernel picks a free one. The guest reaches nothing but this.
        "-netdev", "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22",
        "-device", "virtio-net-pci,netdev=net,romfile=",
        "-device", "virtio-rng-pci",
        "-serial", f"file:{state / 'console.log'}",
        "-qmp", f"unix:{state / 'qmp'},server=on,wait=off",
    ]


def spawn(command: list[str], log: Path, *, owned: bool) -> subprocess.Popen[bytes]:
    """Starts QEMU; `owned`: the kernel kills it when this process ends, however it ends."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Not hit by the terminal's Ctrl-C, which is for whoever runs the tests.
            start_new_session=True,
            preexec_fn=dies_with_parent() if owned else None,
        )


class Qmp:
    """QEMU's control socket, one conversation at a time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._reply()
        self.execute("qmp_capabilities")

    def execute(self, command: str, **arguments: Any) -> Any:
        self._stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._stream.flush()
        while True:
            reply = self._reply()
            if "error" in reply:
                raise GuestError(f"QEMU refused {command}: {reply['error']['desc']}")
            if "return" in reply:
                return reply["return"]

    def _reply(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise GuestError("QEMU closed its control socket")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def ssh_port(self) -> int:
        listing = self.execute("human-monitor-command", **{"command-line": "info usernet"})
        if not (found := re.search(r"HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)", listing)):
            raise GuestError(f"no forwarded port in:\n{listing}")
        return int(found[1])


@contextmanager
def qmp(path: Path) -> Iterator[Qmp]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(QMP_TIMEOUT)
        connection.connect(str(path))
        with connection.makefile("rw") as stream:
            yield Qmp(stream)


def is_qemu(pid: int, state: Path) -> bool:
    """Whether `pid` still is the QEMU of this state directory, and not a process that got its number."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(str(state / "qmp").encode() in word for word in command)


def death_notice(state: Path) -> str:
    return f"QEMU is gone\n{tail(state / 'qemu.log', 10)}\n{tail(state / 'console.log')}"
