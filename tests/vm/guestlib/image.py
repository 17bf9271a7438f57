# SPDX-License-Identifier: Apache-2.0
"""Builds and caches the disk image of the guest.

The recipe is the directory `image/`; a cached image is named by a hash of it,
so that a change of the recipe leads to a new image and nothing else does.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import emulator
from .cache import ISOLATED, Logged, cache_dir, ensure, locked
from .errors import GuestError

RECIPE = Path(__file__).resolve().parent.parent / "image"
SUITE = "bookworm"
# Sparse: only what is written takes space on the building machine.
DISK_SIZE = "4G"
# What reaches the disk and the network card. ext4 asks for the checksum only when it mounts.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4")
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "mke2fs": "e2fsprogs",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "unshare": "util-linux",
}


@dataclass(frozen=True)
class Variant:
    """Which kernel the guest has."""

    name: str
    kernel: str
    # A further Debian suite, from the mirror of the main one.
    extra_suite: str | None = None


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("6.1", "linux-image-amd64"),
        Variant("6.12", f"linux-image-amd64/{SUITE}-backports", f"{SUITE}-backports"),
    )
}


@dataclass(frozen=True)
class Image:
    """A finished image in the cache; its files are read-only to guests."""

    path: Path

    @property
    def disk(self) -> Path:
        return self.path / "disk.img"

    @property
    def kernel(self) -> Path:
        return self.path / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.path / "initrd.img"

    @property
    def key(self) -> Path:
        return self.path / "ssh_key"

    @property
    def known_hosts(self) -> Path:
        return self.path / "known_hosts"


def recipe_hash(variant: Variant) -> str:
    """Names an image: the recipe's files, their modes, and this builder."""
    digest = hashlib.sha256(repr(variant).encode())
    files = sorted(path for path in RECIPE.rglob("*") if path.is_file())
    for path in [Path(__file__), *files]:
        name = path.name if path == Path(__file__) else str(path.relative_to(RECIPE))
        executable = bool(path.stat().st_mode & 0o100)
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name} {executable} {content}\n".encode())
    return digest.hexdigest()[:16]


def cache_name(variant: Variant) -> str:
    return f"{variant.name}-{recipe_hash(variant)}"


def ensure_image(variant_name: str = "6.1") -> Image:
    """The cached image of this recipe, built first where the cache lacks it. Fetches QEMU, too, as no guest runs without."""
    variant = VARIANTS[variant_name]
    require_tools()
    emulator.ensure_emulator()
    return Image(ensure(cache_name(variant), "guest image", variant.name, lambda work, run: populate(variant, work, run)))


def prune_images() -> list[Path]:
    """Removes the images and emulators that the present recipes do not name."""
    cache = cache_dir()
    if not cache.exists():
        return []
    wanted = {emulator.cache_name(), *map(cache_name, VARIANTS.values())}
    with locked(cache / "lock"):
        stale = [path for path in cache.iterdir() if path.is_dir() and path.name not in wanted]
        for path in stale:
            shutil.rmtree(path)
    return stale


def require_tools() -> None:
    """Names everything that is missing at once, with the packages that have it."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = {package for tool, package in TOOLS.items() if not shutil.which(tool, path=path)}
    if missing:
        raise GuestError(f"missing; install: {' '.join(sorted(missing))}")


def populate(variant: Variant, work: Path, run: Logged) -> None:
    root = work / "rootfs"
    run(*ISOLATED, *bootstrap_command(variant, root))
    give_keys(root, work, run)
    extract_kernel(root, work)
    make_initrd(root, work / "initrd", work / "initrd.img", run)
    run("mke2fs", "-q", "-t", "ext4", "-m", "0", "-d", root, work / "disk.img", DISK_SIZE)
    shutil.rmtree(root)


def bootstrap_command(variant: Variant, root: Path) -> list[str | Path]:
    command: list[str | Path] = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"]
    if variant.extra_suite:
        # Repeats the first entry of the sources for the other suite.
        sources = '"$1/etc/apt/sources.list"'
        line = rf"0,/^deb /s/^\(deb .*\) {SUITE} \(.*\)$/&\n\1 {variant.extra_suite} \2/"
        command.append(f"--setup-hook=sed -i '{line}' {sources}")
    return [
        *command,
        f"--dpkgopt={RECIPE / 'dpkg.cfg'}",
        f"--customize-hook={RECIPE / 'customise'}",
        # Otherwise the machine's identity is taken away again after customise.
        "--skip=cleanup/reproducible",
        f"--include={','.join([*packages(), variant.kernel])}",
        SUITE,
        root,
    ]


def packages() -> list[str]:
    lines = (line.split("#")[0].strip() for line in (RECIPE / "packages").read_text().splitlines())
    return [line for line in lines if line]


def give_keys(root: Path, work: Path, run: Logged) -> None:
    """A key to enter the guest, and the guest's own, both made here and kept in the cache only."""
    key = work / "ssh_key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "berth test guest", "-f", key)
    public = key.with_suffix(".pub").read_text()
    ssh = root / "root" / ".ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    (ssh / "authorized_keys").write_text(public)
    host_key = (root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()
    (work / "known_hosts").write_text(f"berth-guest {host_key[0]} {host_key[1]}\n")


def extract_kernel(root: Path, work: Path) -> None:
    shutil.copyfile(only(root / "boot", "vmlinuz-*"), work / "vmlinuz")


def make_initrd(root: Path, tree: Path, target: Path, run: Logged) -> None:
    """An initramfs of busybox, `image/init` and the modules in BOOT_MODULES."""
    for name in ("bin", "dev", "proc", "sys", "root", "modules"):
        (tree / name).mkdir(parents=True)
    shutil.copy(root / "bin/busybox", tree / "bin/busybox")
    shutil.copy(RECIPE / "init", tree / "init")
    modules = boot_modules(root)
    for module in modules:
        content = module.read_bytes()
        # Newer kernels' modules are packed, and busybox does not unpack them.
        packed = module.suffix == ".xz"
        (tree / "modules" / module.stem).write_bytes(lzma.decompress(content) if packed else content)
    (tree / "modules/order").write_text("".join(f"{module.stem}\n" for module in modules))
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    with target.open("wb") as archive:
        subprocess.run(
            [root / "bin/busybox", "cpio", "-o", "-H", "newc"],
            cwd=tree, input="\n".join(names).encode(), stdout=archive, stderr=run.log, check=True,
        )
    shutil.rmtree(tree)


def boot_modules(root: Path) -> list[Path]:
    """The files of BOOT_MODULES and of all they depend on, in the order in which to load them."""
    directory = only(root / "lib/modules", "*")
    built_in = {Path(line).name for line in (directory / "modules.builtin").read_text().split()}
    needs: dict[str, list[str]] = {}
    for line in (directory / "modules.dep").read_text().splitlines():
        module, _, others = line.partition(":")
        # depmod lists what has to be there first last.
        needs[Path(module).name.split(".")[0]] = [*reversed(others.split()), module]
    order: list[Path] = []
    for name in BOOT_MODULES:
        if f"{name}.ko" not in built_in:
            files = [directory / file for file in needs[name]]
            order += [file for file in files if file not in order]
    return order


def only(directory: Path, pattern: str) -> Path:
    found = sorted(directory.glob(pattern))
    if len(found) != 1:
        raise GuestError(f"expected one {pattern} in {directory}, found {[path.name for path in found]}")
    return found[0]
