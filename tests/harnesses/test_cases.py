"""The golden cases, compared whole."""

import pytest

from amem.harnesses import base, registry
from tests.harnesses import golden

ALL = [(name, case) for name in registry.names() for case in golden.cases(name)]


@pytest.mark.parametrize(("name", "case"), ALL, ids=lambda value: value)
def test_launch_is_exactly_what_the_case_says(name: str, case: str) -> None:
    expected = golden.load(name, case)
    launch = base.launch(registry.load(name), expected.facts)
    assert launch.argv == expected.argv
    assert dict(launch.env) == dict(expected.env)
    assert golden.readable(launch) == expected.files


@pytest.mark.parametrize("name", registry.names())
def test_every_auth_mode_of_every_harness_has_a_case(name: str) -> None:
    shown = {golden.load(name, case).facts.auth for case in golden.cases(name)}
    assert shown == set(registry.load(name).auth)


@pytest.mark.parametrize(("name", "case"), ALL, ids=lambda value: value)
def test_files_stay_beneath_the_home(name: str, case: str) -> None:
    launch = base.launch(registry.load(name), golden.load(name, case).facts)
    assert not [path for path in launch.files if path.startswith("/") or ".." in path.split("/")]
