"""What was found together: the entries that searches of one domain gave beside others, as the read log has it.

Says nothing about who may read them: whoever serves one asks that of each. Reads the end of the log once, and after that what
was added since, so that asking again costs what is new.
"""

import json
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Collection
from pathlib import Path

from amem.typed import NamedTuple

OFTEN = 3
"""Searches that found two entries together, before one is said to go with the other."""
LOOKED_AT_BYTES = 4 << 20
"""Of the log, from its end, when it is first read."""
SEARCHES = 200
"""That found one entry and are remembered of it: the last ones."""


class _Search(NamedTuple):
    place: int
    """Of its line in the log: what tells two searches with the same answer apart."""
    found: tuple[str, ...]


class Together:
    """The searches in the read log at `path`, by domain and entry. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()  # guards the two below
        self._read_bytes: int | None = None
        self._searches: defaultdict[tuple[str, str], deque[_Search]] = defaultdict(lambda: deque(maxlen=SEARCHES))

    def beside(self, domain: str, ids: Collection[str]) -> list[str]:
        """Other entries that searches of this domain found with one of these often enough.

        The most often found first; of those found as often, the one found last, and the better hit.
        """
        with self._lock:
            self._read_on()
            searches = {search for id in ids for search in self._searches.get((domain, id), ())}
        count = Counter(id for search in sorted(searches, reverse=True) for id in search.found if id not in ids)
        return [id for id, times in count.most_common() if times >= OFTEN]

    def _read_on(self) -> None:
        try:
            with self._path.open("rb") as log:
                end = log.seek(0, 2)
                if self._read_bytes is None or self._read_bytes > end:  # for the first time, or it was cut short: from the beginning
                    self._searches.clear()
                    self._read_bytes = max(end - LOOKED_AT_BYTES, 0)
                    log.seek(self._read_bytes)
                    self._read_bytes += len(log.readline()) if self._read_bytes else 0
                log.seek(self._read_bytes)
                for line in log:
                    if not line.endswith(b"\n"):  # a write that is not over
                        break
                    self._read_bytes += len(line)
                    if b'"search"' in line:
                        self._note(line, self._read_bytes)
        except FileNotFoundError:
            return

    def _note(self, line: bytes, place: int) -> None:
        try:
            event = json.loads(line)
            tool, domain, found = event["tool"], event["domain"], event["entries"]
        except (ValueError, KeyError, TypeError):
            return
        if tool == "search" and isinstance(domain, str) and isinstance(found, list) and all(isinstance(id, str) for id in found):
            search = _Search(place, tuple(found))
            for id in found:
                self._searches[domain, id].append(search)
