"""Stand-ins: who imports a module meanwhile gets along, and who imports it afterwards has the module."""

import subprocess
import sys

import pytest

from amem.cli.standins import STAND_INS


def run(code: str) -> str:
    """What a fresh interpreter prints that imported click and pathlib with stand-ins."""
    before = "from amem.cli.standins import stand_ins\nwith stand_ins():\n    import click, pathlib\nimport sys\n"
    return subprocess.run([sys.executable, "-c", before + code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", STAND_INS)
def test_afterwards_there_is_the_module_itself(name: str) -> None:
    code = (
        f"print({name!r} in sys.modules)\n"
        f"import importlib\nmodule = importlib.import_module({name!r})\n"
        "print(module.__spec__.name, len(dir(module)) > 20)\n"
    )
    assert run(code).split() == ["False", name, "True"]


def test_what_a_stand_in_does_not_know_is_the_modules() -> None:
    assert run("print(click.core.inspect.isfunction(len), click.core.inspect.isfunction(lambda: 0))").split() == ["False", "True"]


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("@click.command()\n@click.option('--x', help='''one\n   two''')\ndef f(x): '''Does.'''\nprint(f.params[0].help)", "one\ntwo"),
        ("@click.command()\n@click.option('--x', help=' \tone')\ndef f(x): '''Does.'''\nprint(f.params[0].help)", "one"),
        ("print(pathlib.Path('/a b/ü').as_uri())", "file:///a%20b/%C3%BC"),
        ("print(click.BadParameter('no').format_message())", "Invalid value: no"),
        ("print(click.Choice(['a']).get_missing_message(click.Option(['--x']), None))", "Choose from:\n\ta"),
    ],
)
def test_click_and_pathlib_say_what_they_say(code: str, printed: str) -> None:
    assert run(code).strip() == printed


def test_a_module_that_was_loaded_stays() -> None:
    loaded = "import inspect, uuid\nfrom amem.cli.standins import stand_ins\nwith stand_ins():\n    import click\n"
    code = loaded + "print(click.core.inspect is inspect, click.types.uuid is uuid)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == ["True", "True"]
