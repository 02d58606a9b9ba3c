"""Where a root is, and unknown names in the environment."""

from pathlib import Path

import pytest

from amem.errors import ConfigError, UnavailableError
from amem.settings.root import check_environment, locate


def test_the_flag_wins_over_the_variable_over_the_default(tmp_path: Path) -> None:
    environment = {"AMEM_ROOT": "/r/env", "HOME": "/h"}
    assert locate("/r/flag", environment).path == Path("/r/flag")
    assert locate(None, environment).path == Path("/r/env")
    assert locate(None, {"HOME": "/h"}).path == Path("/h/.amem")


def test_a_root_that_is_not_there_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        locate(str(tmp_path / "none"), {}).existing()
    assert caught.value.hint is not None and "init --owner" in caught.value.hint


def test_an_unknown_name_beginning_amem_is_refused_with_the_near_miss() -> None:
    with pytest.raises(ConfigError, match="AMEM_ROT: not a name amem knows; did you mean AMEM_ROOT"):
        check_environment({"AMEM_ROT": "x", "PATH": "y"})
    check_environment({"AMEM_ROOT": "x", "_AMEM_COMPLETE": "bash_complete"})
