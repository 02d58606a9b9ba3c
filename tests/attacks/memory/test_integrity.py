"""The nine edits of the `agent-memory-integrity` suite (T1 to T9), made to the files of a record behind amem's back."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amem.logs import writer
from amem.logs.schema import Anchor
from amem.memory.contain import contained
from amem.memory.session import Memory, open_memory
from amem.memory.verify import last_anchor, verify
from amem.model.clock import now, stamp
from amem.model.entry import Entry
from amem.model.ids import draw
from amem.record import markdown
from amem.settings import grants
from tests.memory.seed import agent, seeded, written

base = pytest.importorskip("agmi.adapters.base", reason="agent-memory-integrity is not installed (make test installs it)")
at_rest = pytest.importorskip("agmi.attacks.at_rest")


class Files(base.MemoryAdapter):  # type: ignore[misc]
    """The suite's view of a root: an entry file is a record, a domain a context.

    What the tool keeps off the store is the head that `amem verify --anchor` prints, which its owner keeps elsewhere.
    """

    name = "amem"
    detection_point = "audit"
    supports_replay = supports_metadata = supports_snapshot = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._head = ""

    def setup(self) -> None:
        self._seeded = seeded(self._folder)
        self._memory: Memory = self._seeded.__enter__()
        self._memory.clock = now
        self._root = self._memory.root

    def teardown(self) -> None:
        self._seeded.__exit__(None, None, None)

    def seed(self, n: int) -> None:
        self._write("dom-me", n, "Seed")

    def seed_other(self, n: int) -> None:
        self._write("dom-open", n, "Other")

    def append_genuine(self) -> None:
        self._write("dom-me", 1, "Late")

    def _write(self, domain: str, n: int, title: str) -> None:
        for number in range(n):
            written(self._memory, agent(self._memory, domain=domain), f"{title} {number}")
        found = self._verified()
        assert found.broken == ()
        heads = {name: head._asdict() for name, head in found.heads.items()}
        writer.append(self._root.state, Anchor(at=stamp(now()), heads=heads))
        self._head = last_anchor(self._root) or ""

    def read_all_raw(self) -> list[Any]:
        return self._read("dom-me")

    def read_other_raw(self) -> list[Any]:
        return self._read("dom-open")

    def _read(self, domain: str) -> list[Any]:
        entries = [markdown.parse(path.read_bytes()) for path in (self._root.record / domain).rglob("*.md")]
        entries.sort(key=lambda entry: (entry.written_at, entry.title, entry.id))
        return [base.Record(seq, {"entry": entry}) for seq, entry in enumerate(entries)]

    def _slot(self, seq: int) -> Entry:
        entry: Entry = self.read_all_raw()[seq].fields["entry"]
        return entry

    def _put(self, entry: Entry) -> None:
        path = self._root.record / entry.domain / entry.written_at[:4] / entry.written_at[5:7] / f"{entry.id}.md"
        path.write_bytes(markdown.format(entry))

    def write_raw(self, record: Any) -> None:
        entry: Entry = record.fields["entry"]
        slots = self.read_all_raw()
        if record.seq < len(slots):  # what the record says, in the place that it is written to
            slot: Entry = slots[record.seq].fields["entry"]
            entry = replace(entry, id=slot.id, written_at=slot.written_at)
        self._put(entry)

    def delete_raw(self, seq: int) -> None:
        next((self._root.record / "dom-me").rglob(f"{self._slot(seq).id}.md")).unlink()

    def replay_onto(self, victim_seq: int, donor: Any) -> None:
        slot, entry = self._slot(victim_seq), donor.fields["entry"]
        self._put(replace(entry, id=slot.id, domain=slot.domain, written_at=slot.written_at, classification=slot.classification))

    def mutate_payload(self, record: Any) -> Any:
        entry = record.fields["entry"]
        return base.Record(record.seq, {"entry": replace(entry, body=entry.body + " Or not.")})

    def forge_record(self, template: Any) -> Any:
        entry = template.fields["entry"]
        at = entry.written_at[:-2] + "9Z"
        forged = replace(entry, id=draw("entry", entry.domain), written_at=at, title="Seed z", body="Forged.")
        return base.Record(template.seq + 1, {"entry": forged})

    def read_meta(self, seq: int) -> dict[str, Any]:
        return {"author": self._slot(seq).author}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        self._put(replace(self._slot(seq), author="human:acme:eve" if meta.get("agmi_meta_tampered") else meta["author"]))

    def identity_of(self, record: Any) -> str:
        return str(record.fields["entry"].id)

    def payload_of(self, record: Any) -> str:
        return str(record.fields["entry"].body)

    def owner_of(self, record: Any) -> str:
        return str(record.fields["entry"].domain)

    def snapshot_store(self) -> Path:
        copy = self._folder / "copy"
        shutil.copytree(self._root.path, copy)
        return copy

    def restore_store(self, token: Path) -> None:
        self._memory.close()
        shutil.rmtree(self._root.path)
        shutil.copytree(token, self._root.path)

    def reload(self) -> None:
        self._memory.close()
        self._memory = open_memory(self._root, grants.load(self._root.grants))

    def _verified(self) -> Any:
        memory = self._memory
        return verify(self._root, memory.store, memory.grants, memory.ledger, contained(self._root), anchor=self._head)

    def verify(self) -> bool:
        found = self._verified()
        self.verify_detail = "; ".join(f"{one.where}: {one.kind}" for one in found.broken)
        return not found.broken


@pytest.mark.parametrize("attack", at_rest.AT_REST_ATTACKS_WITH_SNAPSHOT, ids=lambda attack: attack.name)
def test_the_edit_lands_and_is_reported(attack: Any, tmp_path: Path) -> None:
    result = attack().run(Files(tmp_path))
    assert (result.guard, result.error) == (None, None)
    assert result.detected, result.detail
