"""The pure functions around a spec."""

import marshal

import pytest

from amem.sandbox.spec import (
    PROTECT,
    Bind,
    Identity,
    Limits,
    SandboxSpec,
    base_env,
    interpreter_binds,
    is_below,
    own_paths,
    plain,
    problems,
    restored,
)

GOOD = SandboxSpec(argv=("true",), env=(("PATH", "/bin"),), workdir="/home/me/work", cwd="/home/me/work/sub", home="/state/home", port=7431)


def test_good_spec_has_no_problem() -> None:
    assert problems(GOOD) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"argv": ()}, "names no program"),
        ({"argv": ("a\0b",)}, "NUL"),
        ({"added": (("../x", "y", ""),)}, "below the work tree"),
        ({"env": (("LD_PRELOAD", "/x"),)}, "LD_PRELOAD"),
        ({"env": (("GIT_CONFIG_GLOBAL", "/x"),)}, "GIT_CONFIG_GLOBAL"),
        ({"env": (("GIT_SSH_COMMAND", "x"),)}, "GIT_SSH_COMMAND"),
        ({"env": (("a=b", ""),)}, "a=b"),
        ({"workdir": "work", "cwd": "work"}, "absolute"),
        ({"workdir": "/home/me/../x", "cwd": "/home/me/../x"}, "absolute"),
        ({"workdir": "/", "cwd": "/"}, "workdir may not be"),
        ({"workdir": "/usr/src", "cwd": "/usr/src"}, "workdir may not be"),
        ({"workdir": "/etc", "cwd": "/etc"}, "workdir may not be"),
        ({"workdir": "/proc/1", "cwd": "/proc/1"}, "workdir may not be"),
        ({"cwd": "/home/me"}, "cwd"),
        ({"home_inside": "/etc/home"}, "home_inside may not be"),
        ({"port": 0}, "port"),
        ({"user_id": 0}, "user_id"),
        ({"user_name": "a:b"}, "user_name"),
        ({"hostname": "a b"}, "hostname"),
        ({"binds": (Bind("/x", "/opt/memory/x"),)}, "makes that itself"),
        ({"binds": (Bind("/x", "/dev/x"),)}, "makes that itself"),
        ({"binds": (Bind("/x", "/usr/x", True),)}, "may not be"),
        ({"protect": ("../x",)}, "must lie below"),
        ({"limits": Limits(processes=0)}, "limits"),
        ({"git": Identity('a"b', "c")}, "git identity"),
        ({"git": Identity("a\n[core]", "c")}, "git identity"),
    ],
)
def test_spec_that_would_open_a_hole_is_named(change: dict[str, object], words: str) -> None:
    found = problems(GOOD._replace(**change))  # type: ignore[arg-type]
    assert any(words in problem for problem in found), found


def test_interpreter_below_usr_needs_no_bind() -> None:
    assert interpreter_binds("/usr/bin/python3", "/usr", "/usr") == ()


def test_interpreter_of_an_environment_is_bound_at_its_own_paths() -> None:
    assert interpreter_binds("/srv/venv/bin/python", "/srv/venv", "/opt/python") == (
        Bind("/srv/venv", "/srv/venv"),
        Bind("/opt/python", "/opt/python"),
    )
    assert interpreter_binds("/srv/venv/bin/python", "/srv/venv", "/usr") == (Bind("/srv/venv", "/srv/venv"),)
    assert interpreter_binds("/opt/python/env/bin/python", "/opt/python/env", "/opt/python") == (Bind("/opt/python", "/opt/python"),)
    assert interpreter_binds("/shims/python", "/opt/python", "/opt/python") == (
        Bind("/opt/python", "/opt/python"),
        Bind("/shims", "/shims"),
    )


def test_own_code_in_the_tree_is_found() -> None:
    assert own_paths("/w", "/w/amem", "/w/.venv") == (Bind("/w/amem", "/w/amem"), Bind("/w/.venv", "/w/.venv"))
    assert own_paths("/w", "/w/.venv/lib/amem", "/w/.venv") == (Bind("/w/.venv", "/w/.venv"),)
    assert own_paths("/w", "/elsewhere/amem", "/wide/venv") == ()


def test_environment_has_nothing_of_the_caller_but_the_list() -> None:
    caller = {
        "SECRET_KEY": "x",
        "LD_PRELOAD": "x",
        "SSH_AUTH_SOCK": "x",
        "TERM": "xterm-kitty",
        "TZ": "Europe/Berlin",
        "PATH": "/evil",
        "GIT_CONFIG": "x",
    }
    made = base_env(caller, "/home/agent", "agent")
    assert "x" not in made.values()
    assert (made["TERM"], made["TZ"], made["LANG"]) == ("xterm-kitty", "Europe/Berlin", "C.UTF-8")
    assert made["PATH"].startswith("/opt/memory:") and "/evil" not in made["PATH"]
    assert problems(GOOD._replace(env=tuple(made.items()))) == ()


@pytest.mark.parametrize("git", [None, Identity("Ada", "ada@example.org")])
def test_a_spec_reaches_the_stage_as_it_was(git: Identity | None) -> None:
    spec = GOOD._replace(binds=(Bind("/a", "/b", True), Bind("/c", "/c")), limits=Limits(processes=9), git=git, ports=(1, 2))
    there = restored(marshal.loads(marshal.dumps(plain(spec))))
    assert there == spec
    assert [type(part) for part in (*there.binds, there.limits, there.git)] == [Bind, Bind, Limits, type(git)]


def test_below_is_by_whole_names() -> None:
    assert is_below("/a/b", "/a") and is_below("/a", "/a") and is_below("/a", "/")
    assert not is_below("/ab", "/a")


def test_protected_names_lie_below_the_tree() -> None:
    assert all(not name.startswith("/") and ".." not in name.split("/") for name in PROTECT)
