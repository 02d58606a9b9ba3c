"""Keys: where they are looked for, who may read the file, and that they never print."""

from pathlib import Path

import pytest

from amem.errors import ConfigError
from amem.settings import credentials


def write(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "credentials.env"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, '# keys\nA_KEY=from-file\nexport B_KEY="quoted"\n')
    found = credentials.load(path, {"A_KEY": "from-env"})
    a, b = found.find("A_KEY"), found.find("B_KEY")
    assert a is not None and a.reveal() == "from-env"
    assert b is not None and b.reveal() == "quoted"
    assert found.find("C_KEY") is None


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="others on this machine may read your keys"):
        credentials.load(write(tmp_path, "A=b", 0o640), {})


def test_a_broken_line_is_named_without_its_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        credentials.load(write(tmp_path, "A=b\nsk-secret-value\n"), {})
    assert "line 2" in caught.value.message
    assert "sk-secret" not in caught.value.message


def test_a_key_never_prints(tmp_path: Path) -> None:
    found = credentials.load(write(tmp_path, "A_KEY=planted-secret\n"), {"B_KEY": "planted-too"})
    shown = f"{found!r} {found.find('A_KEY')!r} {found.find('A_KEY')} {found.find('B_KEY')}"
    assert "planted" not in shown


def test_no_file_is_no_error(tmp_path: Path) -> None:
    assert credentials.load(tmp_path / "credentials.env", {}).find("A") is None
