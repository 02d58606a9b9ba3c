"""The golden cases, compared whole."""

import re

import pytest

from amem.errors import UsageError
from amem.harnesses import base, registry
from amem.harnesses.base import Auth, LaunchFacts
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
def test_the_cases_of_a_harness_are_complete(name: str) -> None:
    """Each mode headless (any program's prompt is its own argument), and the interactive form and a bearer at least once."""
    harness, shown = registry.load(name), [golden.load(name, case).facts for case in golden.cases(name)]
    assert {facts.auth for facts in shown} == set(harness.auth)
    assert {facts.auth for facts in shown if facts.headless} >= set(harness.auth) - ({Auth.KEY} if name == "command" else set())
    assert any(not facts.headless for facts in shown) and any(facts.token for facts in shown)


@pytest.mark.parametrize("name", registry.names())
def test_every_destination_launches_as_some_case_says(name: str) -> None:
    """One that has no case of its own differs from a case's launch in its name alone."""
    harness, shown = registry.load(name), [golden.load(name, case).facts for case in golden.cases(name)]

    def alike(facts: LaunchFacts, destination: str) -> bool:
        case, other = (repr(base.launch(harness, one)) for one in (facts, facts._replace(destination=destination)))
        return case == other or case.replace(facts.destination, "@") == other.replace(destination, "@")

    for mode in harness.auth:
        for destination in harness.destinations[mode]:
            known = [one for one in shown if one.auth is mode and (one.model or destination not in harness.model_required)]
            assert any(alike(facts, destination) for facts in known), (mode, destination)


@pytest.mark.parametrize("name", registry.names())
def test_a_mode_that_a_harness_has_not_is_refused_with_the_reason(name: str) -> None:
    harness = registry.load(name)
    for mode in set(Auth) - set(harness.auth):
        with pytest.raises(UsageError, match=re.escape(harness.refusals[mode])):
            base.choose(harness, auth=mode, destination=None)


@pytest.mark.parametrize(("name", "case"), ALL, ids=lambda value: value)
def test_files_stay_beneath_the_home(name: str, case: str) -> None:
    launch = base.launch(registry.load(name), golden.load(name, case).facts)
    assert not [path for path in launch.files if path.startswith("/") or ".." in path.split("/")]
