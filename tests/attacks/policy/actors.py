"""A process that acts on a root as it is told, one line of JSON each: `{"act", "who", "id"}`; it answers with one line for each.

python -m tests.attacks.policy.actors ROOT
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from amem.errors import AmemError
from amem.memory.demote import demote
from amem.memory.erase import erase
from amem.memory.outcomes import Refused
from amem.memory.promote import approve, decline, promote
from amem.memory.session import agent_session, open_memory, owner_session
from amem.model import ids
from amem.model.entry import Tier
from amem.settings import grants
from amem.settings.root import Root


class Actor:
    """Such a process, from outside."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.answer() == "ready"

    def tell(self, act: str, who: str, id: str) -> None:
        """Say what to do."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"act": act, "who": who, "id": id}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """What came of it: `done`, or the name of what was raised or refused."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the actor ended"
        return str(json.loads(line))

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def main(path: str) -> None:
    """Act until nothing more is said."""
    root = Root(Path(path))
    memory = open_memory(root, grants.load(root.grants))
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if told["who"].startswith("agent:"):
            session = agent_session(memory, id=ids.draw("session"), principal=told["who"], domain="dom-me")
        else:
            session = owner_session(memory, told["who"], "dom-me")
        acts: dict[str, Any] = {
            "approve": lambda id, session=session: approve(memory, session, id),
            "decline": lambda id, session=session: decline(memory, session, id, "not so"),
            "propose": lambda id, session=session: promote(memory, session, id, Tier.VERIFIED, "it was checked"),
            "demote": lambda id, session=session: demote(memory, session, id, "it was wrong"),
            "erase": lambda id, session=session: erase(memory, session, (id,), "asked for"),
        }
        try:
            found = acts[told["act"]](told["id"])
            said = found.code if isinstance(found, Refused) else "done"
        except AmemError as error:
            said = type(error).__name__
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
