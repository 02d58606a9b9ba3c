"""What was erased in the shapes in which it lies around: broken by a terminal, in names, behind links; and the receipt says none of it."""

import os
import zlib
from pathlib import Path

import pytest

from amem.memory.erase import erase
from amem.memory.session import Memory
from tests.memory.seed import agent, owner, written

CANARY = "zebra7QuartzCanary19"
HEAD, TAIL = CANARY[:9], CANARY[9:]


def erased(memory: Memory) -> tuple[list[str], str]:
    """What is left below the root, by path, and the receipt's text."""
    entry = written(memory, agent(memory), "The vault", body=f"We open it with {CANARY} on Mondays.")
    receipt = erase(memory, owner(memory), (entry.id,), "asked for")
    said = (memory.root.state / "erased" / f"{receipt.id}.json").read_text()
    return list(receipt.searched.left), said


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}\n{TAIL}",
        f"$ cat code\r\n{HEAD}\r\n{TAIL}\r\n",
        f"{HEAD}\x1b[0m{TAIL}",
        f"{HEAD}\x1b[K\r\n\x1b[1;31m{TAIL}",
        f"{HEAD}\N{SOFT HYPHEN}{TAIL}",
        f"{HEAD}\N{ZERO WIDTH SPACE}{TAIL}",
        CANARY.upper(),
    ],
)
def test_a_word_that_something_broke_is_found(memory: Memory, text: str) -> None:
    file = memory.root.state / "homes" / "ses-01234567" / "screen.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())
    left, said = erased(memory)
    assert not file.exists()
    assert (left, CANARY in said) == ([], False)


def test_any_level_of_compression_is_looked_into(memory: Memory) -> None:
    files = [memory.root.state / f"{level}.z" for level in range(1, 10)]
    for level, file in enumerate(files, start=1):
        file.write_bytes(zlib.compress(CANARY.encode() * 9, level))
    assert erased(memory)[0] == []
    assert not any(file.exists() for file in files)


def test_names_of_files_folders_and_links_and_where_these_lead(memory: Memory) -> None:
    home = memory.root.state / "homes" / "ses-01234567"
    inner = home / f"on-{CANARY}" / f"{CANARY}-again"
    inner.mkdir(parents=True)
    (inner / "plain.txt").write_text("hello")
    (inner / "quoting.txt").write_text(f"It was {CANARY}.")
    (home / f"{CANARY}.txt").write_text("hello")
    (home / "link").symlink_to(f"/nowhere/{CANARY}")
    (home / f"{CANARY}.lnk").symlink_to("/nowhere")
    left, said = erased(memory)
    paths = [str(path) + (os.readlink(path) if path.is_symlink() else "") for path in memory.root.path.rglob("*")]
    assert not [path for path in paths if CANARY in path]
    assert [Path(path).read_text() for path in paths if path.endswith(".txt")] == ["hello"]
    assert (left, CANARY.lower() in said.lower()) == ([], False)


def test_a_link_of_such_a_name_is_not_followed(memory: Memory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{CANARY}.txt").write_text(CANARY)
    (memory.root.state / "out").symlink_to(outside)
    (memory.root.state / CANARY).symlink_to(outside)
    erased(memory)
    assert (outside / f"{CANARY}.txt").read_text() == CANARY
