"""Erase the words of a task: its title, text, remarks, checks, requirements and reasons, wherever an event or a row holds them.

The only place where what was appended is changed afterwards, and only words are: who did what to which task, when and under which claim
stays, so that a replay still comes to the projection. That it was done is an event itself.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator

from amem.ledger import events as ev
from amem.ledger.backend import Tx
from amem.ledger.projection import ERASED
from amem.ledger.task import Task
from amem.ledger.work import Work
from amem.typed import Any

WORDS: dict[str, dict[str, Any]] = {
    "created": {"title": ERASED, "body": None, "twin": None, "check": [], "requires": []},
    "released": {"why": ERASED, "blocker": ERASED},
    "blocked": {"on": ERASED},
    "unblocked": {"why": ERASED},
    "invalidated": {"why": ERASED},
    "posted": {"text": ""},
    "graded": {"grader": None},
}
"""What stands in the place of each key that holds words, or the digest of some, by kind of event; None and an empty list leave it out."""
TEXTS = {"created": "body", "posted": "text"}
"""The key that holds a text's digest."""


def erase(work: Work, task: str, by: str) -> Task:
    """Erase the words of one task; an open one is closed, since nobody could do it any more. Raises NotFoundError."""
    work.tx.serialise()
    found = work.get(task)
    digests = set()
    for row in work.tx.rows("events_of", {"id": task}):
        seq, kind, data = row[0], row[1], json.loads(row[6])
        digests |= {data.get(TEXTS.get(kind, ""))} - {None, ""}
        left = {key: _instead(WORDS.get(kind, {}), key, value) for key, value in data.items()}
        kept = {key: value for key, value in left.items() if value not in (None, [])}
        if kept != data:
            work.tx.run("rewrite", {"seq": seq, "data": ev.encode(kept)})
    for digest in sorted(digests):
        if {other for (other,) in work.tx.rows("quoting", {"pattern": f"%{digest}%"})} <= {task}:
            work.tx.run("drop_text", {"digest": digest})
    if found.status.open:
        work.do(ev.Invalidated(task=task, by=by, at_ms=work.at(found), fence=found.fence, why=ERASED))
    return work.do(ev.Erased(task=task, by=by, at_ms=work.at(found), fence=found.fence))


def mentioning(tx: Tx, says: Callable[[str], bool]) -> Iterator[str]:
    """The tasks of a domain with words of which `says` holds, each once."""
    found: dict[str, None] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    for kind, task, _, _, _, text in tx.rows("all_events", {"domain": tx.domain}):
        data = json.loads(text)
        if digest := data.get(TEXTS.get(kind, "")):
            texts[digest].append(task)
        words = (data[key] for key in WORDS.get(kind, ()) if key in data and key != TEXTS.get(kind))
        if any(says(one) for word in words for one in (word if isinstance(word, list) else [word])):
            found[task] = None
    for digest, text in tx.rows("all_texts", {}):
        if digest in texts and says(text):
            found.update(dict.fromkeys(texts[digest]))
    yield from found


def whys(work: Work, entries: Collection[str], says: Callable[[str], bool]) -> int:
    """Erase why these entries were promoted, and each why of the domain of which `says` holds; how many."""
    found = [seq for seq, entry, why in work.tx.rows("whys", {"domain": work.tx.domain}) if entry in entries or says(why)]
    for seq in found:
        work.tx.run("drop_why", {"seq": seq})
    return len(found)


def _instead(words: dict[str, Any], key: str, value: Any) -> Any:
    return words.get(key, value) if value not in (None, "", []) else value
