# SPDX-License-Identifier: Apache-2.0
"""What a result depends on: each change of it gives another hash, and nothing else does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testing.tree import Tree, names_in

# Two programs that are made of a source each, of which one includes a header that ninja learns of from a list.
NINJA = """
rule compile
  command = cat $in inc.h > $out && echo "$out: ../inc.h" > $out.list
  depfile = $out.list
  deps = gcc
rule copy
  command = cp $in $out $flags
build one.o: compile ../one.c
build one: copy one.o
build two: copy ../two.c
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "build").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", root], check=True)
    for name in ("one.c", "two.c", "inc.h", "docs/page.md", "tests/unit/a_test.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"this is {name}\n")
    (root / ".gitignore").write_text("build\n")
    (root / "build/build.ninja").write_text(NINJA.replace("inc.h >", "../inc.h >"))
    make(root)
    return root


def make(root: Path) -> None:
    subprocess.run(["ninja", "-C", root / "build", "--quiet"], check=True)


def test_a_pattern_takes_files_at_any_depth_and_the_last_one_that_matches_decides(checkout: Path) -> None:
    tree = Tree(checkout)
    assert tree.matching("docs/*", "tests/*") == ["docs/page.md", "tests/unit/a_test.py"]
    assert tree.matching("*", "!tests/*", "!*.c", "one.*") == [".gitignore", "docs/page.md", "inc.h", "one.c"]


def test_a_file_that_upstream_has_not_so_is_edited_committed_or_not(checkout: Path, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=checkout, check=True, stdout=subprocess.DEVNULL)

    git("add", ".")
    git("commit", "-qm", "upstream")
    git("checkout", "-q", "-b", "work")
    assert Tree(checkout).edited("*") == []
    (checkout / "docs/new.md").write_text("")
    (checkout / "inc.h").write_text("changed\n")
    (checkout / "two.c").unlink()
    assert Tree(checkout).edited("*") == ["docs/new.md", "inc.h"]
    assert Tree(checkout).edited("docs/*") == ["docs/new.md"]
    git("add", ".")
    git("commit", "-qm", "work")
    # Without an upstream, what is committed is.
    assert Tree(checkout).edited("*") == []
    git("branch", "-q", "upstream", "HEAD^")
    git("update-ref", "refs/remotes/origin/HEAD", "HEAD^")
    assert Tree(checkout).edited("*") == ["docs/new.md", "inc.h"]
    git("update-ref", "-d", "refs/remotes/origin/HEAD")
    git("branch", "-q", "--set-upstream-to", "upstream")
    assert Tree(checkout).edited("*") == ["docs/new.md", "inc.h"]


@pytest.mark.parametrize("change", ["content", "mode", "removal", "new"])
def test_each_change_of_a_file_gives_another_hash(checkout: Path, change: str) -> None:
    before = Tree(checkout).files("docs/*").hash()
    page = checkout / "docs/page.md"
    if change == "content":
        page.write_text("another\n")
    elif change == "mode":
        page.chmod(0o755)
    elif change == "removal":
        page.unlink()
    else:
        (checkout / "docs/new.md").write_text("")
    assert Tree(checkout).files("docs/*").hash() != before


def test_a_program_depends_on_the_headers_of_its_objects_and_no_other_program_does(checkout: Path) -> None:
    before = [Tree(checkout).built(name).hash() for name in ("one", "two")]
    (checkout / "inc.h").write_text("changed\n")
    make(checkout)
    after = [Tree(checkout).built(name).hash() for name in ("one", "two")]
    assert after[0] != before[0] and after[1] == before[1]


def test_how_the_compiler_names_a_header_changes_nothing(checkout: Path) -> None:
    before = Tree(checkout).built("one").hash()
    ninja = checkout / "build/build.ninja"
    as_before = ninja.read_text()
    ninja.write_text(as_before.replace('"$out: ../inc.h"', f'"$out: {checkout}/inc.h"'))
    make(checkout)
    # The command is the former one, and what the compiler said is the new list.
    ninja.write_text(as_before)
    assert Tree(checkout).built("one").hash() == before


def test_the_build_of_a_package_says_nothing_of_objects_with_the_same_name(checkout: Path) -> None:
    before = Tree(checkout).built("one").hash()
    for place in ("package/objects", "other"):
        (checkout / "build" / place).mkdir(parents=True)
        (checkout / "build" / place / "one.d").write_text("one.o: ../two.c\n")
    assert Tree(checkout).built("one").hash() == before


def test_a_program_depends_on_its_commands(checkout: Path) -> None:
    before = [Tree(checkout).built(name).hash() for name in ("one", "two")]
    ninja = checkout / "build/build.ninja"
    ninja.write_text(ninja.read_text().replace("build two: copy ../two.c", "build two: copy ../two.c\n  flags = --force"))
    make(checkout)
    after = [Tree(checkout).built(name).hash() for name in ("one", "two")]
    assert after[0] == before[0] and after[1] != before[1]


def test_another_checkout_of_the_same_state_has_the_same_hashes(checkout: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere/with/another/name"
    subprocess.run(["cp", "-a", "--", checkout, tmp_path / "copy"], check=True)
    other.parent.mkdir(parents=True)
    (tmp_path / "copy").rename(other)
    assert Tree(other).built("one", "two").hash() == Tree(checkout).built("one", "two").hash()
    assert Tree(other).files("*").hash() == Tree(checkout).files("*").hash()


def test_names_of_packages_are_those_of_all_alternatives_without_versions() -> None:
    assert names_in("libc6 (>= 2.36), gcc-12:any | gcc, , debconf") == ["libc6", "gcc-12", "gcc", "debconf"]


def test_packages_are_hashed_with_all_that_they_need(checkout: Path) -> None:
    (checkout / "tools").mkdir()
    (checkout / "tools/packages-some").write_text("# A list.\nbash\n")
    found = {line.split(" ")[1] for line in Tree(checkout).packages("some").lines}
    assert {"bash", "libc6", "libtinfo6"} <= found and "gcc" not in found
