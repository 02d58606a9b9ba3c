"""What `amem task timeline` and `show` say of the attempts at a task: what they took, and whether the checked tree is still that.

Imported where one of the two is asked for: a listing needs neither meter nor snapshots.
"""

import os
from collections import Counter
from collections.abc import Mapping

from amem.cli.context import Context
from amem.cli.output import one_line
from amem.egress import contexts
from amem.egress.reading import report, sessions
from amem.launch.snapshot import Store
from amem.ledger.task import Task
from amem.model.ids import is_id
from amem.reports import cost
from amem.settings import prices
from amem.typed import Any


def show(row: Mapping[str, Any]) -> None:
    """Print one attempt for a person."""
    ended = row.get("ended_at", "now")
    task = f"{row['task']}  " if "task" in row else ""
    print(one_line(f"{task}{row['claimed_at'][:19]} to {ended[:19]}  {row['outcome']}  {row['holder']}  {row.get('session', '')}"))
    if "calls" in row:
        money = f" · ${row['usd']:.4f}{'+' if row.get('floor') else ''}" if "usd" in row else ""
        print(f"  {row['calls']} calls · {row['tokens']} tokens{money} · {row['errors']} errors")
    if row.get("tools"):
        print("  " + one_line("tools: " + ", ".join(f"{name} {count}" for name, count in row["tools"].items())))
    for name in ("check", "grade", "why", "handoff"):
        if row.get(name):
            print("  " + one_line(f"{name}: {row[name]}"))


def metered(context: Context, domain: str, session: str | None) -> dict[str, Any]:
    """What the meter knows of a session and the tools that its answers asked for; nothing of one it does not know."""
    rows = report(context.root, by=("session", "model"), session=session) if session else []
    if session is None or not rows:
        return {}
    spent = cost.costs(rows, "session", prices.load(context.root.prices))[session]
    tokens = sum(row[name] for row in rows for name in ("input", "output", "cache_read", "cache_write"))
    calls = contexts.read(context.root.record / domain / ".contexts" / session) if is_id("session", session) else []
    money = {"usd": float(spent.usd), **({"floor": True} if spent.floor else {})} if spent.usd or spent.floor else {}
    return {
        "calls": sum(row["calls"] for row in rows), "tokens": tokens, **money,
        "tools": dict(Counter(tool for call in calls for tool in call.get("tools", ())).most_common()),
        "errors": sum(count for row in rows for count in row.get("status", {}).values()) + sum(row.get("partial", 0) for row in rows),
    }  # fmt: skip


def stale(context: Context, task: Task) -> bool:
    """Whether the tree in which a task's checks ran is another by now; False where it is not on this machine."""
    if task.checked_tree is None or task.session is None:
        return False
    ran = sessions(context.root, session=task.session)
    if not ran or not os.path.isdir(workdir := ran[0]["workdir"]):
        return False
    return Store(context.root, workdir).digest() != task.checked_tree
