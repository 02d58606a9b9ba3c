"""What is read of git's configuration by hand, beside what git itself reads."""

import subprocess
from pathlib import Path

import pytest

from amem.sandbox import gitconfig
from tests.sandbox.test_worktree import ENV


@pytest.mark.parametrize(
    "text",
    [
        '[a]\n\tb = c\n[a "d"]\n  e=f\n[A.D]\ng = h',
        "\ufeff[a]\r\n\tb = c d  \r\n\te = f\t ; g\r\n",
        '[a "x]y"] b = c # d\n[a "q\\"r\\\\s"]\nb = "#;" c"d"\n',
        "[a]\nb = one\\\n  two\\\n\nc = d\n",
        '[a]\nb = "one \\n\\t\\"two\\\\"  ; c\n# d = e\n ; f = g\n',
        '[a]\nb = " x " y \nc = "" \nd =\nb-C9 = e\n',
        "[a]\nb = c#d\ne = f;g = h\n[i]j = k=l\n",
    ],
)
def test_a_configuration_says_what_git_takes_from_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text, newline="")
    said = subprocess.run(["git", "config", "-z", "--list", "-f", tmp_path / "config"], env=ENV, check=True, capture_output=True, text=True)
    rows = [tuple(row.split("\n", 1)) for row in said.stdout.split("\0")[:-1]]
    found = [(".".join(filter(None, (each.section, each.sub, each.key))), each.value) for each in gitconfig.settings(text)]
    assert found == rows
