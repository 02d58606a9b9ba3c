"""`amem taint`, `why` and `demote` as the owner types them."""

from .conftest import Amem


def test_an_entry_from_service_to_tombstone(amem: Amem) -> None:
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.")[1]["id"]
    assert amem("get", entry)[0] == 0
    code, found, _ = amem("taint", entry)
    assert code == 0
    assert [one["principal"] for one in found["readers"]] == ["human:asf:you"]
    assert (found["entries"], found["tasks"]) == ([], [])
    code, told, _ = amem("why", entry)
    assert (code, told["served"]) == (0, True)
    code, told, _ = amem("why", entry, "--principal", "human:asf:nobody")
    assert (code, told["served"]) == (3, False)
    assert amem("demote", entry, "--why", "w")[0] == 2
    assert amem("demote", entry, "--why", "w", "--dry-run")[0] == 0
    assert amem("demote", entry, "--why", "w", "--yes")[1] == {"id": entry, "status": "demoted", "version": 2}
    code, told, _ = amem("why", entry)
    assert (code, [step["rule"] for step in told["steps"] if not step["passes"]]) == (3, ["status"])
    assert amem("get", entry)[0] == 3


def test_what_is_not_there(amem: Amem) -> None:
    for command in (["taint"], ["why"], ["demote", "--why", "w", "--yes"]):
        assert amem(*command, "mem-me-zzzzzzzzzzzz")[0] == 3
        assert amem(*command, "../../etc/passwd")[0] == 2
