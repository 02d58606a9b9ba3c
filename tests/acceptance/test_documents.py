"""Every command in the README and in `docs/` runs, in order, on a root of its own.

A launch is run as far as a machine without that harness can: with `--dry-run`, a stand-in on PATH for the program. The real
programs are launched in `test_real_harnesses.py`.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place

DOCUMENTS = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
ELSEWHERE = {
    # What is run by other means: the whole suite, the demonstration (test_demo.py), the person's own shell.
    "make test", "make demo", "make test-real", "make bench", "make check", "cd your-project", ". .venv/bin/activate",
}  # fmt: skip
FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(document: Path) -> list[str]:
    """The commands of a document's shell blocks, comments off."""
    lines = "\n".join(FENCE.findall(document.read_text())).replace("\\\n", " ").splitlines()
    return [stripped for line in lines if (stripped := re.sub(r"\s+#.*$", "", line).strip()) and not stripped.startswith("#")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_of_a_document_runs(document: Path, place: Place, provider: Running, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("claude", "codex"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    (tmp_path / "note.md").write_text("A note.")
    keys = {name: "sk-placeholder" for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LLMAO_KEY")}
    place.environment |= keys | {"PATH": f"{programs}:{os.environ['PATH']}"}
    known = [place.amem("write", "--type", "fact", "--title", "known", "--body", "Known.").out.strip()]
    left = place.amem("write", "--type", "handoff", "--title", "left", "--body", "Left.")
    assert left.code == 0, left.err
    for command in commands(document):
        if command in ELSEWHERE or command.startswith(("export ", "sudo ", "make ")):
            continue
        words = shlex.split(re.sub(r"mem-me-\w{12}", known[0], command))
        assert words[0] == "amem", f"{document.name}: {command}: not a command this test knows how to run"
        words = [str(tmp_path / word) if word.endswith(".tar") else word for word in words]
        if words[1] == "init":
            words[1:1] = ["--root", str(tmp_path / "another")]
        elif words[1] in ("launch", "work"):
            at = words.index("--") if "--" in words else len(words)
            words[at:at] = ["--dry-run", "--workdir", str(place.tree)]
        elif words[1] == "serve":
            continue  # ends with its stdin; tests/server runs it
        done = place.amem(*words[1:], stdin="")
        assert done.code == 0, f"{document.name}: {command}\n{done.err}"


def test_make_commands_name_targets_that_exist() -> None:
    makefile = (PROJECT / "Makefile").read_text()
    for document in DOCUMENTS:
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", document.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{document.name}: make {target}"


def test_links_between_documents_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"
