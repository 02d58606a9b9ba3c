"""The record's policies: which entries lay one down, which of them a person approved, and what is in force at this moment.

Owns `state/policies.json`, which can be deleted: what was found out once about approvals and load checks, by digests, so that a start
repeats neither. A file that says it is verified is not enough: the ledger must hold a person's approval of the entry, and the
body must be the one that was written. What is not known is not in force; a ledger that cannot be asked stops the caller.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from amem.errors import AmemError, UnavailableError
from amem.logs.schema import MemoryWrite
from amem.logs.writer import Writer
from amem.model.clock import Clock, now
from amem.model.entry import Entry, EntryType, Status, Tier
from amem.policy import entries
from amem.policy.door import Door
from amem.policy.engine import PolicyEngine, Rule, grants_data, load
from amem.policy.entries import InForce, Standing
from amem.record.index import Index
from amem.record.store import Loaded, Store
from amem.settings import database
from amem.settings.grants import Grants
from amem.settings.root import Root
from amem.typed import Any

_LAID_DOWN = """select e.id, e.digest, d.path, e.name from entry e join folder d on d.n = e.folder
where e.status = 'active' and e.type = 'policy' and e.acl in (select n from acl where tier >= ?) order by e.id"""
"""Through the index on (status, acl, type): the rows of the record are not gone through."""
_Row = tuple[str, str, str, str]


class Policies:
    """The policies of one root. One thread at a time uses it."""

    def __init__(self, root: Root, clock: Clock = now) -> None:
        self.standing = InForce()
        """As of the last `load`."""
        self._root = root
        self._clock = clock
        self._connection: database.Connection | None = None
        self._inode = 0
        self._version = -1
        self._rows: tuple[_Row, ...] = ()
        self._notes = root.state / "policies.json"

    def changed(self) -> bool:
        """Whether the entries that may be policies are others than at the last look. Costs two system calls and a counter."""
        try:
            inode = os.stat(self._root.index).st_ino
        except FileNotFoundError:
            return False  # it is being made anew: what is in force stays so
        if self._connection is None or inode != self._inode:
            self.close()
            self._connection = database.connect(self._root.index, durable=False, read_only=True, check_same_thread=False)
            self._inode, self._version = inode, -1
        try:
            version = self._connection.execute("pragma data_version").fetchone()[0]
            if version == self._version:
                return False
            rows = self._connection.execute(_LAID_DOWN, (Tier.VERIFIED.rank,)).fetchall()
        except database.Error as error:
            raise UnavailableError(f"the record's policies cannot be looked up: {error}", hint="amem reindex") from error
        self._version, before, self._rows = version, self._rows, tuple(rows)
        return self._rows != before

    def load(self, grants: Grants) -> InForce:
        """What is in force, as `changed` last saw it. Raises AmemError when an approval cannot be looked up."""
        self.standing = self._judged(grants, self._rows) if self._rows else InForce()
        return self.standing

    def all(self, grants: Grants) -> InForce:
        """Every policy entry, those without effect included, where each stands; load checks are made again."""
        self.changed()
        assert self._connection is not None
        rows = self._connection.execute(_LAID_DOWN, (Tier.RAW.rank,)).fetchall()
        return self._judged(grants, rows, again=True)

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def foresee(self, grants: Grants, entry: Entry) -> Standing:
        """Where an entry would stand once it is approved; its load check is known then, so that no decision waits for it."""
        notes = _read(self._notes)
        loaded = [one for one in self._files(self._rows, grants) if one.entry.id != entry.id]
        approved = self._approved(grants, loaded, notes)
        # It will be the last that was approved, also where the ledger's clock, which will say when, runs ahead of this one.
        at_ms = max((round(self._clock().timestamp() * 1000), *(ms + 1 for ms in approved.values())))
        mine = _standing(replace(entry, tier=Tier.VERIFIED), at_ms)
        found, checks = self._stand([*(_standing(one.entry, approved.get(one.entry.id)) for one in loaded), mine], notes["checks"])
        _write(self._notes, {**notes, "checks": checks})
        return next(one for one in found.standings if one.entry == entry.id)

    def _judged(self, grants: Grants, rows: Sequence[_Row], *, again: bool = False) -> InForce:
        notes = _read(self._notes)
        loaded = self._files(rows, grants)
        approved = self._approved(grants, loaded, notes)
        known = {} if again else notes["checks"]
        judged, checks = self._stand([_standing(one.entry, approved.get(one.entry.id)) for one in loaded], known)
        fresh = {_key(one): approved[one.entry.id] for one in loaded if one.entry.id in approved}
        if checks != notes["checks"] or fresh.keys() - notes["approved"].keys():
            _write(self._notes, {"approved": {**notes["approved"], **fresh}, "checks": {**notes["checks"], **checks}})
        return judged

    def _stand(self, standings: Sequence[Standing], known: Mapping[str, bool]) -> tuple[InForce, Mapping[str, bool]]:
        checks = dict(known)

        def loadable(rules: Sequence[Rule]) -> Mapping[str, str]:
            from amem.policy.lint import refused

            out, verdicts = refused(
                rules, [one for one, sound in known.items() if sound], [one for one, sound in known.items() if not sound]
            )
            checks.update(verdicts)
            return out

        return entries.stand(standings, loadable, self._clock()), checks

    def _files(self, rows: Sequence[_Row], grants: Grants) -> list[Loaded]:
        return [found for row in rows if (found := self._file(row)) is not None and found.entry.domain in grants.domains]

    def _file(self, row: _Row) -> Loaded | None:
        _, _, folder, name = row
        with suppress(AmemError):  # malformed, or gone by now
            found = Store(self._root).load(self._root.record / (name if folder == "." else f"{folder}/{name}"))
            if found.entry.type is EntryType.POLICY and found.entry.status is Status.ACTIVE:
                return found
        return None

    def _approved(self, grants: Grants, loaded: Iterable[Loaded], notes: Mapping[str, Any]) -> Mapping[str, int]:
        """When each entry that is verified was approved, for those that were."""
        verified = [one for one in loaded if one.entry.tier is Tier.VERIFIED]
        known = {one.entry.id: at for one in verified if (at := notes["approved"].get(_key(one))) is not None}
        asked = [one for one in verified if one.entry.id not in known]
        if not asked:
            return known
        from amem.ledger.opening import open_reading
        from amem.ledger.promotions import State

        written = dict(_written(self._root))
        with open_reading(self._root, grants) as ledger:
            for one in asked:
                landed = [
                    promotion.at_ms
                    for promotion in ledger.promotions(one.entry.id)
                    if promotion.to == Tier.VERIFIED and promotion.state is State.LANDED and promotion.version < one.entry.version
                ]
                if landed and written.get(one.entry.id, _digest(one)) == _digest(one):
                    known[one.entry.id] = max(landed)
        return known


def in_force(root: Root, grants: Grants) -> InForce:
    """The record's policies at this moment. Raises AmemError."""
    policies = Policies(root)
    try:
        _indexed(root)
        policies.changed()
        return policies.load(grants)
    finally:
        policies.close()


def engine(root: Root, grants: Grants) -> PolicyEngine:
    """The policy in force, with the record's rules and exceptions, for one who decides a while. Raises AmemError."""
    found = in_force(root, grants)
    return load(root.policy, grants_data(grants), found.rules, found.exemptions)


def rubric(root: Root, grants: Grants, domain: str) -> Mapping[str, Any] | None:
    """What the policies in force in a domain say of the ranks of its tasks. Raises AmemError."""
    policies = Policies(root)
    try:
        policies.changed()
        return policies.load(grants).rubrics.get(domain)
    finally:
        policies.close()


@contextmanager
def door(root: Root, grants: Grants) -> Iterator[Door]:
    """A door for a command that opens no memory. Raises AmemError."""
    root.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    logs = Writer(root.state)
    try:
        yield Door(engine(root, grants), logs.append, now)
    finally:
        logs.close()


def standing(root: Root, grants: Grants) -> InForce:
    """Where every policy entry stands, checked anew. Raises AmemError."""
    policies = Policies(root)
    try:
        _indexed(root)
        return policies.all(grants)
    finally:
        policies.close()


def _indexed(root: Root) -> None:
    fresh = not root.index.exists()
    root.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    index = Index.open(root)
    try:
        if fresh:
            index.rebuild()
        else:
            index.refresh()
    finally:
        index.close()


def _standing(entry: Entry, approved_ms: int | None) -> Standing:
    found = Standing(entry=entry.id, domain=entry.domain, tier=entry.tier, label=entry.classification, policy=None, approved_ms=approved_ms)
    try:
        return replace(found, policy=entries.parse(entry.body))
    except ValueError as error:
        return replace(found, why=str(error))


def _written(root: Root) -> Iterator[tuple[str, str]]:
    """The digest of the body of each policy entry, as the log says it was written."""
    with suppress(FileNotFoundError), open(root.state / MemoryWrite.log, "rb") as lines:
        for line in lines:
            if b'"policy"' in line:
                with suppress(ValueError):
                    event = json.loads(line)
                    if event.get("event") == MemoryWrite.event and event.get("entry"):
                        yield event["entry"], event["digest"]


def _digest(one: Loaded) -> str:
    return "sha256:" + hashlib.sha256(one.entry.body.encode()).hexdigest()


def _key(one: Loaded) -> str:
    return f"{one.entry.id}@{one.entry.version} {_digest(one)}"


def _read(path: "os.PathLike[str]") -> dict[str, dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        return {"approved": dict(found["approved"]), "checks": dict(found["checks"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"approved": {}, "checks": {}}


def _write(path: "os.PathLike[str]", notes: Mapping[str, Any]) -> None:
    """Keep what was found out; where that cannot be, it is found out again."""
    fresh = f"{os.fspath(path)}.{os.getpid()}"
    with suppress(OSError):
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
            json.dump(notes, file)
        os.replace(fresh, path)
