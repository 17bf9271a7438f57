# SPDX-License-Identifier: Apache-2.0
"""The command `tests/vm/guest`."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .errors import GuestError
from .guest import Guest
from .image import VARIANTS, ensure_image, prune_images
from .machine import TOPOLOGIES, Topology


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """The options that choose what is booted, shared with `tests/vm/run`."""
    parser.add_argument("--variant", choices=sorted(VARIANTS), default="6.1", help="kernel (default: %(default)s)")
    parser.add_argument("--topology", choices=sorted(TOPOLOGIES), default="two-socket", help="(default: %(default)s)")
    parser.add_argument("--smp", metavar="SOCKETS,CORES,THREADS", help="another shape than the preset's")
    parser.add_argument("--numa", type=int, metavar="NODES", help="another number of NUMA nodes")
    parser.add_argument("--memory", type=int, metavar="MIB", help="another amount of memory")
    parser.add_argument("--append", default="", metavar="ARGS", help="further kernel arguments")


def chosen_topology(options: argparse.Namespace) -> Topology:
    topology = TOPOLOGIES[options.topology]
    if options.smp:
        try:
            sockets, cores, threads = (int(part) for part in options.smp.split(","))
        except ValueError:
            raise GuestError(f"--smp: expected three numbers, got {options.smp!r}") from None
        topology = replace(topology, sockets=sockets, cores=cores, threads=threads, numa_nodes=sockets)
    if options.numa:
        topology = replace(topology, numa_nodes=options.numa)
    if options.memory:
        topology = replace(topology, memory_mib=options.memory)
    return topology


def image(options: argparse.Namespace) -> int:
    for path in prune_images() if options.prune else ():
        print(f"removed {path}", file=sys.stderr)
    print(ensure_image(options.variant).path)
    return 0


def up(options: argparse.Namespace) -> int:
    ensure_image(options.variant)
    started = time.monotonic()
    guest = Guest.boot(
        options.name,
        topology=chosen_topology(options),
        variant=options.variant,
        kernel_arguments=options.append,
        disks=options.disk,
        owned=False,
        cold=options.cold,
    )
    print(f"guest {options.name!r} is up after {time.monotonic() - started:.1f} s; logs: {guest.state}")
    return 0


def run(options: argparse.Namespace) -> int:
    words: list[str] = options.command[options.command[:1] == ["--"] :]
    # One word is for the shell, as with ssh; several are taken as they are.
    command = words[0] if len(words) == 1 else shlex.join(words)
    return Guest.attach(options.name).stream(command, user=options.user)


def push(options: argparse.Namespace) -> int:
    Guest.attach(options.name).push(options.source, options.target)
    return 0


def pull(options: argparse.Namespace) -> int:
    Guest.attach(options.name).pull(options.source, options.target)
    return 0


def install(options: argparse.Namespace) -> int:
    Guest.attach(options.name).install(options.staging)
    return 0


def power_cycle(options: argparse.Namespace) -> int:
    Guest.attach(options.name).power_cycle()
    return 0


def down(options: argparse.Namespace) -> int:
    if guest := Guest.find(options.name):
        guest.down()
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="guest", description="Builds, boots and enters the virtual machine of berth's tests."
    )
    top.add_argument("--name", default="default", help="which guest, where several run (default: %(default)s)")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    one = commands.add_parser("image", help="build the image and fetch QEMU unless the cache has them; print the image's place")
    one.add_argument("--variant", choices=sorted(VARIANTS), default="6.1", help="kernel (default: %(default)s)")
    one.add_argument("--prune", action="store_true", help="remove images and QEMUs of former recipes")
    one.set_defaults(function=image)

    one = commands.add_parser("up", help="boot in the background and wait until the guest is ready")
    add_machine_options(one)
    one.add_argument("--disk", type=Path, action="append", default=[], metavar="IMAGE", help="a further disk, to be read")
    one.add_argument("--cold", action="store_true", help="boot, instead of going on from the kept state of a booted guest")
    one.set_defaults(function=up)

    one = commands.add_parser("run", help="run a command in the guest; exit with its status")
    one.add_argument("--user", help="as this user instead of root (there is `tester`)")
    one.add_argument("command", nargs=argparse.REMAINDER, metavar="CMD")
    one.set_defaults(function=run)

    one = commands.add_parser("push", help="copy a file, or a directory's contents, into the guest")
    one.add_argument("source", type=Path)
    one.add_argument("target")
    one.set_defaults(function=push)

    one = commands.add_parser("pull", help="copy a file, or a directory's contents, out of the guest")
    one.add_argument("source")
    one.add_argument("target", type=Path)
    one.set_defaults(function=pull)

    one = commands.add_parser("install", help="unpack a DESTDIR over the guest and tell systemd and the bus")
    one.add_argument("staging", type=Path)
    one.set_defaults(function=install)

    one = commands.add_parser("power-cycle", help="as if the power had failed and come back")
    one.set_defaults(function=power_cycle)

    one = commands.add_parser("down", help="end the guest")
    one.set_defaults(function=down)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    front = parser()
    options = front.parse_args(arguments)
    if options.function is run and not options.command:
        front.error("run: no command")
    try:
        return int(options.function(options))
    except GuestError as error:
        print(f"guest: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
