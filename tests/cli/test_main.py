"""The command line as a whole: start-up imports, unknown commands, exit codes."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from amem import __version__
from amem.cli.group import ROOT_GROUP
from amem.cli.main import run
from amem.cli.table import COMMANDS, overview

BEFORE_THE_ORDER = {
    "click", "typing", "ctypes", "prctl", "pysqlite3", "json", "socket", "select", "signal", "urllib", "ipaddress", "resource", "termios",
}  # fmt: skip
"""What a launch loads, if at all, once its stage builds the sandbox, or what the stage alone needs."""
NEEDLESS = {"inspect", "dataclasses", "gettext", "uuid", "platform", "hashlib", "ssl", "aiohttp", "asyncio", "logging", "traceback"}
HEAVY = {"aiohttp", "mcp", "asyncio", "pydantic", "click", "pysqlite3", "regorus", "yaml", "dataclasses"}


def imported_by(*argv: str, cwd: Path | None = None, until: str = "") -> set[str]:
    """The top-level modules that a command line imports, to its end or until it calls a method of its stage."""
    code = (
        "import sys, atexit\n"
        "sys.argv = ['amem', *sys.argv[1:]]\n"
        "from amem.cli import main\n"
        "import os; leave = os._exit; own = os.getpid()\n"
        "def told(code):\n"
        "    if os.getpid() == own: os.write(2, ' '.join({name.split('.')[0] for name in sys.modules}).encode())\n"
        "    leave(code)\n"
        "os._exit = told\n"
        "from amem.sandbox.child import Stage\n"
        f"if {until!r}: setattr(Stage, {until!r}, lambda *_: told(0))\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], cwd=cwd, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_version_imports_not_even_typing() -> None:
    assert not imported_by("--version") & {"typing", "re", "json", "pathlib"}


@pytest.mark.parametrize("argv", [["--version"], ["--help"], []])
def test_version_and_overview_import_no_library(argv: list[str]) -> None:
    assert not imported_by(*argv) & HEAVY


@pytest.mark.parametrize("argv", [["--version"], ["--help"], [], ["image", "--help"]])
def test_what_a_full_disk_took_is_not_called_done(argv: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "amem", *argv]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "amem: stdout: No space left on device\ntry: df -h; df -i\n")


def test_a_commands_help_imports_click_and_nothing_of_the_servers() -> None:
    found = imported_by("search", "--help")
    assert "click" in found
    assert not found & {"aiohttp", "mcp", "asyncio", "pydantic"}


@pytest.mark.parametrize("argv", [["task", "list"], ["launch", "--harness", "command", "--provider", "demo", "--dry-run", "--", "true"]])
def test_what_is_waited_for_imports_nothing_it_could_do_without(tmp_path: Path, argv: list[str]) -> None:
    root = ["--root", str(tmp_path / "root")]
    assert run([*root, "init", "--owner", "human:asf:me"]) == 0
    with (tmp_path / "root" / "grants.toml").open("a") as grants:
        grants.write('[destinations.demo]\nceiling = "internal"\nbase_url = "http://127.0.0.1:9"\n')
    (tmp_path / "work").mkdir()
    assert not imported_by(*root, *argv, cwd=tmp_path / "work") & NEEDLESS


def test_a_launch_orders_its_sandbox_before_it_loads_what_can_wait(tmp_path: Path) -> None:
    root = ["--root", str(tmp_path / "root")]
    assert run([*root, "init", "--owner", "human:asf:me"]) == 0
    with (tmp_path / "root" / "grants.toml").open("a") as grants:
        grants.write('[destinations.demo]\nceiling = "internal"\nbase_url = "http://127.0.0.1:9"\n')
    (tmp_path / "work").mkdir()
    launch = ["launch", "--harness", "command", "--provider", "demo", "--", "true"]
    imported_by(*root, *launch, cwd=tmp_path / "work", until="order")  # the first one compiles the hook program
    assert not imported_by(*root, *launch, cwd=tmp_path / "work", until="order") & (BEFORE_THE_ORDER | NEEDLESS)


def test_the_overview_names_every_command_and_fits_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    text = overview("0")
    assert all(f"  {name} " in text for name in COMMANDS)
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Usage: amem" in out
    assert "amem" in out.split("Options:")[-1], "an example is missing"


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["serach"], 2, "did you mean search?"),
        (["list", "--tpye", "fact"], 2, "No such option"),
        (["list", "--root"], 2, "--root needs a value"),
        (["--root", "/nonexistent/amem", "list"], 1, "there is no root at /nonexistent/amem"),
        (["--root", "/nonexistent/amem", "launch", "--harness", "codex", "--auth", "key"], 1, "there is no root at /nonexistent/amem"),
    ],
)
def test_what_is_wrong_is_said_with_its_code(argv: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == code
    captured = capsys.readouterr()
    assert says in captured.err
    assert "try: amem" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(("words", "says"), [([], "which harness?"), (["--harness", "cluade"], "claude")])
def test_the_harness_is_asked_for_before_the_root(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", "/nonexistent/amem", "launch", *words]) == 2
    assert says in capsys.readouterr().err


def test_with_json_an_error_is_one_json_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--json", "serach"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["error"]["code"] == "usage"


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if row.attribute == "group"])
def test_with_json_a_group_without_a_command_is_an_error_and_no_help_text(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name]) == 0
    assert capsys.readouterr().out.startswith("Usage: amem")
    assert run([name, "--json"]) == 2
    captured = capsys.readouterr()
    told = json.loads(captured.err)["error"]
    assert (captured.out, told["hint"]) == ("", f"amem {name} --help")
    assert told["message"].startswith(f"amem {name}: which command? there are ")


def test_an_unknown_amem_variable_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AMEM_ROT", "/x")
    assert run(["list"]) == 2
    assert "did you mean AMEM_ROOT" in capsys.readouterr().err


def test_init_makes_a_root_that_passes_its_own_check_and_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    assert run(["--root", str(root), "--json", "init", "--owner", "human:asf:you", "--domain", "dom-x"]) == 0
    created = json.loads(capsys.readouterr().out)
    assert created["root"] == str(root)
    assert str(root / "grants.toml") in created["created"]
    assert {path.stat().st_mode & 0o77 for path in [root, *root.rglob("*")]} == {0}
    before = (root / "grants.toml").read_bytes()
    assert run(["--root", str(root), "init", "--owner", "human:asf:else"]) == 1
    assert (root / "grants.toml").read_bytes() == before


def test_init_beside_another_says_that_the_root_is_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("amem.commands.init._create", lambda path, text: path.name != "grants.toml")
    assert run(["--root", str(tmp_path / "root"), "init", "--owner", "human:asf:you"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "by somebody else meanwhile" in captured.err


@pytest.mark.parametrize("owner", ["you", "agent:claude", "human:asf", "human:a b:c", ""])
def test_init_refuses_an_owner_that_is_no_person(tmp_path: Path, owner: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", str(tmp_path / "root"), "init", "--owner", owner]) == 2
    assert not (tmp_path / "root").exists()


def test_what_click_says_on_many_lines_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", str(tmp_path), "write"]) == 2
    assert capsys.readouterr().err.startswith("amem: Missing option '--type'. Choose from: fact, decision, ")


def test_bytes_that_are_no_text_are_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--root", str(tmp_path / "r"), "init", "--owner", "human:asf:you"]) == 0
    assert run(["--root", str(tmp_path / "r"), "task", "list", "--origin", "a\udcff"]) == 2
    assert "bytes that are not UTF-8" in capsys.readouterr().err


@pytest.fixture
def root(tmp_path: Path) -> list[str]:
    found = ["--root", str(tmp_path / "root")]
    assert run([*found, "init", "--owner", "human:asf:you"]) == 0
    return found


@pytest.mark.parametrize(
    ("argv", "code", "tries"),
    [
        (["write", "--type", "fact", "--title", "", "--body", "b"], 2, "amem write --help"),
        (["task", "create", "a\nb"], 2, "amem task create --help"),
        (["task", "list", "--limit", "9" * 20], 2, "amem task list --help"),
        (["list", "--limit", "9" * 20], 2, "amem list --help"),
        (["launch", "--prompt"], 2, "amem launch --help"),
        (["task", "create", "--body"], 2, "amem task create --help"),
        (["verify", "--head", "x"], 2, "amem verify --help"),
        (["policy", "eval", "/nonexistent"], 2, "amem policy eval --help"),
        (["policy", "replay", "--policy", "/"], 2, "amem policy replay --help"),
        (["handoff", "show", "mem-me-\x1b[31m"], 2, "amem list"),
        (["quarantine", "show", "held-0123abcd"], 3, "amem quarantine list"),
        (["promote", "mem-me-0123456789ab", "--to", "curated", "--why", "x"], 3, "amem search --help"),
        (["why", "mem-me-0123456789ab", "--session", "ses-0123abcd"], 3, "amem session list"),
        (["declassify", "session", "ses-0123abcd", "--to", "public", "--why", "x"], 3, "amem session list"),
    ],
)
def test_every_no_names_one_command_and_shows_no_control_character(
    root: list[str], argv: list[str], code: int, tries: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run([*root, *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    if not tries.endswith("--help"):
        tries = f"amem --root {root[1]}{tries.removeprefix('amem')}"
    assert captured.err.endswith(f"\ntry: {tries}\n")
    assert captured.err.replace("\n", "").isprintable()


def test_a_conflict_names_the_command_that_shows_what_was_quicker(root: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def write(title: str, *supersedes: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([*root, "write", "--type", "fact", "--title", title, "--body", "b", *supersedes])
        return code, *capsys.readouterr()

    _, old, _ = write("old")
    _, new, _ = write("new", "--supersedes", old.strip())
    code, out, err = write("late", "--supersedes", old.strip())
    assert (code, out) == (1, "")
    assert err.endswith(f"\ntry: amem --root {root[1]} get {new}")


@pytest.mark.parametrize("argv", [["usage"], ["cost"], ["list"], ["task", "stats"], ["image", "list"], ["session", "stop", "--all"]])
def test_what_is_said_where_there_is_nothing_is_no_result(root: list[str], argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run([*root, *argv]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err != ""


def test_a_current_directory_that_is_gone_is_named(
    root: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run([*root, "instructions", "list"]) == 1
    assert "amem: the current directory: No such file" in capsys.readouterr().err


def test_a_list_can_be_of_what_is_new_or_due(root: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*root, "write", "--type", "fact", "--title", "due", "--body", "b", "--review-by", "2020-01-01"]) == 0
    assert run([*root, "write", "--type", "fact", "--title", "not yet", "--body", "b", "--review-by", "2199-01-01"]) == 0
    shown = {}
    for flags in (("--due",), ("--since", "1h"), ("--since", "2199-01-01")):
        capsys.readouterr()
        assert run([*root, "list", "--json", *flags]) == 0
        shown[flags] = {entry["title"] for entry in json.loads(capsys.readouterr().out)["entries"]}
    assert shown == {("--due",): {"due"}, ("--since", "1h"): {"due", "not yet"}, ("--since", "2199-01-01"): set()}


@pytest.mark.parametrize("argv", [["--json", "--version"], ["list", "--version"], ["--json"], ["--no-color", "--help"]])
def test_a_global_flag_before_them_changes_neither_version_nor_overview(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(argv) == 0
    assert capsys.readouterr().out.strip() in (f"amem {__version__}", overview(__version__))


def test_each_example_of_a_help_text_is_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--help"]) == 0
    assert "\n  Examples:\n    amem list --type handoff --since 7d\n    amem list --sort title --limit 0\n" in capsys.readouterr().out


def leaves() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that name it, subcommands too."""
    for name in COMMANDS:
        command = ROOT_GROUP.get_command(click.Context(ROOT_GROUP), name)
        assert command is not None
        yield (name,), command
        if isinstance(command, click.Group):
            yield from (((name, sub), each) for sub, each in command.commands.items())


def test_each_flag_in_an_example_is_one_of_its_command() -> None:
    commands = dict(leaves())
    for words, command in commands.items():
        for line in (command.epilog or "").splitlines():
            said = shlex.split(line.partition(" -- ")[0].replace("…", "x")) if line.startswith("  amem ") else []
            if "--as" in said:
                del said[said.index("--as") : said.index("--as") + 2]
            called = commands.get(tuple(said[1:3])) or commands.get(tuple(said[1:2]))
            known = {"--help", *(flag for option in called.params for flag in (*option.opts, *option.secondary_opts))} if called else set()
            assert not said or {word for word in said if word.startswith("--")} - {"--json"} <= known, (words, line)


def test_each_command_has_an_example_and_each_option_says_what_it_is_for() -> None:
    for words, command in leaves():
        if not isinstance(command, click.Group) and not command.hidden:
            assert "Example" in (command.epilog or ""), words
            assert [one.opts for one in command.params if isinstance(one, click.Option) and not (one.help or one.hidden)] == [], words


def test_a_list_of_commands_cuts_no_sentence_short(capsys: pytest.CaptureFixture[str]) -> None:
    for words, command in leaves():
        if isinstance(command, click.Group):
            assert run([*words, "--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith("...") and "Usage:" not in line] == []


def test_a_no_to_a_question_is_told_nothing_to_try(
    root: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert run([*root, "demote", "mem-me-0123456789ab", "--why", "x"]) == 2
    assert capsys.readouterr().err.endswith("amem: not done: it was not confirmed\n")
