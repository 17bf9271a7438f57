# SPDX-License-Identifier: Apache-2.0
"""What a test's result depends on, as one hash: files of the checkout, compile commands, installed packages, and other facts.

Nothing here depends on where the checkout is, so a result counts in another checkout of the same state.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

# Directories of the build directory that other builds and the tests make.
NO_OBJECTS = ("package", "staging", "test", "demo-logs")
PAGES = re.compile(r"/share/(man|bash-completion|zsh|fish)/")
STATUS = "${Package}\t${Version}\t${db:Status-Status}\t${Pre-Depends}, ${Depends}\t${Provides}\n"


@dataclass(frozen=True)
class Package:
    version: str
    needs: list[str]
    provides: list[str]


@dataclass(frozen=True)
class Inputs:
    """Lines, each of which says one input. Their order does not count."""

    lines: frozenset[str] = frozenset()

    def __or__(self, other: Inputs) -> Inputs:
        return Inputs(self.lines | other.lines)

    def hash(self) -> str:
        return hashlib.sha256("\n".join(sorted(self.lines)).encode()).hexdigest()[:16]


class Tree:
    """A checkout and its build directory, as they are at the first look. Make another one to look again."""

    def __init__(self, root: Path, build: Path | None = None) -> None:
        self.root = root
        self.build = build or root / "build"
        self._hashes: dict[str, str] = {}

    # Files

    @cached_property
    def names(self) -> list[str]:
        """The files that git knows or does not ignore, from the root."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self.root, capture_output=True, check=True,
        ).stdout.decode(errors="surrogateescape")
        return sorted({name for name in listed.split("\0") if name})

    def files(self, *patterns: str) -> Inputs:
        """The files that a pattern matches, as in "model/*" (at any depth). One that begins with "!" takes files away. The last one decides."""
        return inputs(f"file {name} {self._hash(name)}" for name in self.matching(*patterns))

    def matching(self, *patterns: str) -> list[str]:
        def wanted(name: str) -> bool:
            last = next((pattern for pattern in reversed(patterns) if fnmatchcase(name, pattern.removeprefix("!"))), "!")
            return not last.startswith("!")

        return [name for name in self.names if wanted(name)]

    def edited(self, *patterns: str) -> list[str]:
        """The files among them that are new or other ones than upstream has: the branch that this one follows, or origin's. Without
        either, than HEAD has."""

        def git(*words: str) -> str:
            done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, check=False)
            return "" if done.returncode else done.stdout.decode(errors="surrogateescape")

        bases = (git("merge-base", "HEAD", name).strip() for name in ("@{upstream}", "origin/HEAD"))
        base = next(filter(None, bases), "HEAD")
        other = {*git("diff", "-z", "--name-only", base).split("\0"), *git("ls-files", "-z", "--others", "--exclude-standard").split("\0")}
        return [name for name in self.matching(*patterns) if name in other and (self.root / name).is_file()]

    def names_of(self, inputs: Inputs) -> list[str]:
        """The files among them."""
        return sorted(line.split(" ")[1] for line in inputs.lines if line.startswith("file "))

    def _hash(self, name: str) -> str:
        if name not in self._hashes:
            path = self.root / name
            try:
                mode = "x" if os.access(path, os.X_OK) else "-"
                content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                self._hashes[name] = f"{mode}{hashlib.sha256(content).hexdigest()}"
            except OSError:
                # Known to git, and removed here.
                self._hashes[name] = "absent"
        return self._hashes[name]

    # What the build makes

    def built(self, *targets: str) -> Inputs:
        """All files and compile commands from which ninja makes these files of the build directory. They have to be up to date."""
        found = Inputs()
        for target in targets:
            found |= self._built(target)
        return found

    def _built(self, target: str) -> Inputs:
        if target not in self._targets:
            made = self._ninja("inputs", target)
            sources = self._in_checkout(made).union(*(self._included.get(name, ()) for name in made))
            commands = {f"command {self._placeless(line)}" for line in self._ninja("commands", target)}
            self._targets[target] = inputs(commands | {f"file {name} {self._hash(name)}" for name in sources})
        return self._targets[target]

    @cached_property
    def _targets(self) -> dict[str, Inputs]:
        return {}

    @cached_property
    def _included(self) -> dict[str, set[str]]:
        """By object, the files of the checkout that the compiler read for it."""
        found: dict[str, list[str]] = {}
        target = ""
        for line in self._ninja("deps"):
            if line.startswith("    "):
                found[target].append(line.strip())
            elif ": #deps " in line:
                target = line.split(": #deps ")[0]
                found[target] = []
        # Of what ninja reads at each start, it keeps no such list. Another part may make and remove files meanwhile; its own builds have the
        # names of these objects.
        for where, below, names in os.walk(self.build):
            if Path(where) == self.build:
                below[:] = [name for name in below if name not in NO_OBJECTS]
            for name in names:
                if not name.endswith(".d"):
                    continue
                try:
                    made, _, others = Path(where, name).read_text().replace("\\\n", " ").partition(":")
                except OSError:
                    continue
                found.setdefault(made.strip(), others.split())
        return {made: self._in_checkout(others) for made, others in found.items()}

    def _ninja(self, tool: str, *arguments: str) -> list[str]:
        return subprocess.run(
            ["ninja", "-C", self.build, "-t", tool, *arguments], capture_output=True, text=True, check=True
        ).stdout.splitlines()

    def _in_checkout(self, paths: Iterable[str]) -> set[str]:
        """Those of the paths, whole ones or from the build directory, that git knows or does not ignore. A unity source names the files in it
        by whole paths, which ccache shortens."""
        up, root = os.path.relpath(self.root, self.build) + "/", f"{self.root}/"
        return self._known & {path.removeprefix(up).removeprefix(root) for path in paths if path.startswith((up, root))}

    @cached_property
    def _known(self) -> set[str]:
        return set(self.names)

    def _placeless(self, text: str) -> str:
        """Where the checkout is changes no program, and neither does whether a warning is an error."""
        return text.replace(str(self.root), "ROOT").replace(" -Werror ", " ")

    def target_of(self, path: str) -> str | None:
        """The name by which ninja knows a file of the build directory."""
        name = os.path.relpath(path, self.build)
        return None if name.startswith("..") else name

    def made(self, *names: str) -> Inputs:
        """Files of the build directory by their bytes: what was made when the build was configured."""
        return inputs(f"made {name} {self._hash(str(self.build / name))}" for name in names)

    def described(self, what: str) -> list[dict]:
        """What meson wrote of the build: "tests" or "targets"."""
        return json.loads((self.build / "meson-info" / f"intro-{what}.json").read_text())

    def installed(self, *, pages: bool = True) -> Inputs:
        """All that `meson install` installs: the programs, and the files of the checkout. Without `pages`: but manual pages and completions."""
        targets, others = [], []
        known = {name for target in self.described("targets") for name in map(self.target_of, target["filename"])}
        for path, place in json.loads((self.build / "meson-info/intro-installed.json").read_text()).items():
            if not pages and PAGES.search(place):
                continue
            name = self.target_of(path)
            if name in known:
                targets.append(name)
            else:
                # Made when the build was configured.
                others.append(f"installed {self._placeless(path)} {self._hash(path)}")
        return self.built(*targets) | inputs(others)

    # What is installed on this machine

    def packages(self, *lists: str) -> Inputs:
        """The versions of the Debian packages of tools/packages-LIST, and of all that these need."""
        wanted = [name for file in lists for name in package_names(self.root / f"tools/packages-{file}")]
        found: set[str] = set()
        while wanted:
            name = wanted.pop()
            for package in self._providers.get(name, ()):
                if package not in found:
                    found.add(package)
                    wanted += self._installed[package].needs
        return inputs(f"package {package} {self._installed[package].version}" for package in found)

    @cached_property
    def _installed(self) -> dict[str, Package]:
        shown = subprocess.run(["dpkg-query", "-W", "-f", STATUS], capture_output=True, text=True, check=True).stdout
        rows = (line.split("\t") for line in shown.splitlines())
        return {
            name: Package(version, names_in(needs), names_in(provides))
            for name, version, status, needs, provides in rows
            if status == "installed"
        }

    @cached_property
    def _providers(self) -> dict[str, list[str]]:
        """By the name of a package, real or virtual, the installed ones that are it."""
        found: dict[str, list[str]] = {}
        for name, package in self._installed.items():
            for provided in (name, *package.provides):
                found.setdefault(provided, []).append(name)
        return found


def package_names(file: Path) -> list[str]:
    return [line.strip() for line in file.read_text().splitlines() if line.strip() and not line.startswith("#")]


def names_in(relations: str) -> list[str]:
    """The packages of a Depends field, without versions; of alternatives, each."""
    words = re.split(r"[,|]", relations)
    return [word.split("(")[0].split(":")[0].strip() for word in words if word.split("(")[0].strip()]


def facts(*lines: str) -> Inputs:
    """What is no file and no package, such as the version of the running kernel."""
    return inputs(f"fact {line}" for line in lines)


def inputs(lines: Iterable[str]) -> Inputs:
    return Inputs(frozenset(lines))
