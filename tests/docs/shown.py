# SPDX-License-Identifier: Apache-2.0
"""The commands that the pages show: README.md, docs/ and the manual pages.

A command stands in a block ```sh, or behind "# " or "$ " in a block ```console, where its output follows. In a manual page it
is a line .Dl, or a block of EXAMPLES that has a program of berth in it. A command may go on over several lines, by a backslash
or a here-document. A comment at its end is not part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A program of berth as a shell would start it.
COMMAND = re.compile(r"(?:^|[|;&(] *)(?:berthctl|berthd|berth-kube|berth-slurm) +[a-z-]")
PROMPT = re.compile(r"^[#$] ")
HERE_DOCUMENT = re.compile(r"<<-?\s*'?(\w+)'?")
# The names that groff has for what a shell needs.
ESCAPES = {r"\(dq": '"', r"\(aq": "'", r"\(ti": "~", r"\(ha": "^", r"\e": "\\", r"\&": "", r"\-": "-"}


class PageError(Exception):
    """A page that no reader and no test can follow; the message names the line."""


@dataclass(frozen=True)
class Shown:
    page: str  # path in the sources
    line: int
    text: str
    output: tuple[str, ...] = ()  # the lines that the page shows below it

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def pages(root: Path = ROOT) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "man").glob("*.[1-8]"))]


def shown(root: Path = ROOT) -> list[Shown]:
    """Every command of every page, in the order of the pages."""
    return [command for page in pages(root) for command in of_page(page, root)]


def of_page(page: Path, root: Path = ROOT) -> list[Shown]:
    name, text = str(page.relative_to(root)), page.read_text()
    return list(of_markdown(name, text) if page.suffix == ".md" else of_manual(name, text))


def of_markdown(name: str, text: str) -> Iterator[Shown]:
    for language, number, lines in blocks(name, text):
        if language == "sh":
            yield from of_script(name, number, lines)
        elif language == "console":
            yield from of_console(name, number, lines)
        elif any(COMMAND.search(PROMPT.sub("", line)) for line in lines):
            raise PageError(f"{name}:{number}: a block with a command is marked sh or console")


def blocks(name: str, text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Language, the number of the first line, and the lines of each block, fenced or indented."""
    language: str | None = None
    start, lines, before = 0, [], ""
    for number, line in enumerate(text.splitlines(), 1):
        if language is None and (fence := re.match(r"^ *```(\w*)$", line)):
            language, start, lines = fence[1], number + 1, []
        elif language is not None and line.strip() == "```":
            yield language, start, lines
            language = None
        elif language is not None:
            lines.append(line)
        elif line.startswith("    ") and not before.strip():
            # The lines after the first one of a block repeat nothing: each is looked at alone.
            yield "", number, [line.strip()]
            continue
        before = line
    if language is not None:
        raise PageError(f"{name}:{start}: the block has no end")


def of_script(name: str, number: int, lines: list[str]) -> Iterator[Shown]:
    for offset, text in joined(lines):
        if command := without_comment(text):
            yield Shown(name, number + offset, command)


def of_console(name: str, number: int, lines: list[str]) -> Iterator[Shown]:
    """A command, and its output up to the next one."""
    starts = [index for index, line in enumerate(lines) if PROMPT.match(line)]
    if not starts or starts[0] != 0:
        raise PageError(f"{name}:{number}: a console begins with a command behind '# ' or '$ '")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        part = [PROMPT.sub("", lines[start], count=1), *lines[start + 1 : end]]
        (_, text), *_rest = joined(part)
        taken = text.count("\n") + 1
        yield Shown(name, number + start, without_comment(text), tuple(part[taken:]))


def joined(lines: list[str]) -> list[tuple[int, str]]:
    """Commands with the offset of their first line."""
    found: list[tuple[int, str]] = []
    index = 0
    while index < len(lines):
        first, part = index, [lines[index]]
        while part[-1].endswith("\\") and index + 1 < len(lines):
            index += 1
            part.append(lines[index])
        if here := HERE_DOCUMENT.search(part[0]):
            while part[-1].strip() != here[1] and index + 1 < len(lines):
                index += 1
                part.append(lines[index])
        found.append((first, "\n".join(part)))
        index += 1
    return found


def without_comment(text: str) -> str:
    """Less a comment at the end of its first line, outside quotes."""
    first, *rest = text.split("\n")
    quote = ""
    for index, character in enumerate(first):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (index == 0 or first[index - 1] in " \t"):
            first = first[:index]
            break
    return "\n".join([first.rstrip(), *rest]).strip()


def of_manual(name: str, text: str) -> Iterator[Shown]:
    section, block, start = "", None, 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(".Sh "):
            section = line[4:]
        elif line.startswith(".Bd "):
            block, start = [], number + 1
        elif line == ".Ed" and block is not None:
            if section == "EXAMPLES" and any(COMMAND.search(part) for part in block):
                yield from of_script(name, start, block)
            block = None
        elif block is not None:
            block.append(unescaped(line))
        elif line.startswith(".Dl "):
            command = unescaped(line[4:])
            if section == "EXAMPLES" or COMMAND.match(command):
                yield Shown(name, number, command)


def configurations(root: Path = ROOT) -> list[Shown]:
    """The blocks of pages that are a berth.toml, or a part of one."""
    found = []
    for page in pages(root):
        name, text = str(page.relative_to(root)), page.read_text()
        if page.suffix == ".md":
            found += [Shown(name, number, "\n".join(lines)) for language, number, lines in blocks(name, text) if language == "toml"]
        elif page.name == "berth.toml.5":
            for block in re.finditer(r"^\.Bd .*\n((?:.*\n)*?)\.Ed$", text, re.M):
                found.append(Shown(name, text.count("\n", 0, block.start()) + 2, unescaped(block[1])))
    return found


def unescaped(text: str) -> str:
    for escape, character in ESCAPES.items():
        text = text.replace(escape, character)
    return text


def mentions(root: Path = ROOT) -> list[Shown]:
    """Commands of berthctl and berthd that a sentence names, as `berthctl plan --json`."""
    found = []
    for page in pages(root):
        name, text = str(page.relative_to(root)), page.read_text()
        pattern = r"`((?:berthctl|berthd) [^`]+)`" if page.suffix == ".md" else r"^\.Ql ((?:berthctl|berthd) .*?)(?: [.,;:)]+)?$"
        for match in re.finditer(pattern, text, re.M):
            words = " ".join(unescaped(match[1]).split())
            found.append(Shown(name, text.count("\n", 0, match.start()) + 1, words))
    return found
