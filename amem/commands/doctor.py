"""`amem doctor`: what a launch needs, what is there, and the command that mends what is missing."""

import os
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import click

from amem.cli import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json, table
from amem.errors import AmemError
from amem.harnesses import registry
from amem.settings import grants as grants_file

SMALL_DISK_BYTES = 1 << 30
ALARM_DAYS = 7


class Line(NamedTuple):
    """One check. `state` is ok, weak (works, with less), missing (a launch needs it) or not_proven."""

    area: str
    name: str
    state: str
    why: str = ""
    fix: str = ""

    def shape(self) -> dict[str, str]:
        """The check as JSON."""
        return {key: value for key, value in self._asdict().items() if value}


@click.command(epilog="Examples: amem doctor    amem doctor --harness claude    amem doctor --config")
@click.option("--harness", metavar="NAME", help="Also say whether this harness could be launched.")
@click.option("--config", is_flag=True, help="Print every value in force and where it came from.")
@click.option("--fix", is_flag=True, help="Print the commands that mend what is missing, and nothing else.")
@click.pass_obj
def command(context: Context, harness: str | None, config: bool, fix: bool) -> int:
    """Check what a launch needs: the true sequence of system calls in a child, the root, keys, harnesses."""
    if config:
        return _print_config(context)
    if harness is not None:
        registry.load(harness)
    lines = [*_backend(), *_root(context), *_machine(context), *_harnesses(context, harness)]
    healthy = all(line.state != "missing" for line in lines)
    if context.flags.json:
        print_json({"checks": [line.shape() for line in lines], "ok": healthy})
    elif fix:
        for line in lines:
            if line.fix and line.state != "ok":
                print(line.fix)
    else:
        print(table(["state", "check", "what was found"], [[line.state, f"{line.area} / {line.name}", line.why] for line in lines]))
        for line in lines:
            if line.state in ("missing", "weak"):
                print(f"\n{line.state}: {line.area} / {line.name}: {one_line(line.why)}")
                if line.fix:
                    print(f"try: {line.fix}")
    return exits.DONE if healthy else exits.ERROR


def _backend() -> Iterator[Line]:
    from amem.sandbox import doctor

    for check in doctor.checks():
        yield Line(check.area, check.name, check.state, check.why or "", check.fix or "")


def _root(context: Context) -> Iterator[Line]:
    root = context.where
    if not root.grants.is_file():
        yield Line(
            "root", "grants", "missing", f"there is no root at {root.path}", f"amem --root {root.path} init --owner human:<org>:<name>"
        )
        return
    try:
        grants = grants_file.load(root.grants)
        keys = context.credentials
    except AmemError as error:
        yield Line("root", "settings", "missing", error.message, error.hint or "")
        return
    yield Line("root", "grants", "ok", f"{root.path}: owner {grants.owner}, {', '.join(grants.domains)}")
    yield _policy(context)
    from amem.egress.destinations import DESTINATIONS

    known = {name: DESTINATIONS[name].key_env for name in grants.destinations if name in DESTINATIONS}
    found = [name for name, variable in known.items() if keys.find(variable)]
    if found:
        yield Line("root", "keys", "ok", f"for {', '.join(found)}")
    else:
        variables = ", ".join(dict.fromkeys(known.values()))
        yield Line("root", "keys", "weak", f"none of {variables} is set", f"edit {root.credentials}")
    yield _prices(context)
    yield from _databases(context)
    yield from _alarms(context)
    if root.index.exists():
        from amem.record.index import Index

        index = Index.open(root)
        try:
            report = index.refresh(full=True)
        finally:
            index.close()
        why = f"{report.entries} entries" + (f", {len(report.problems)} files with a problem" if report.problems else "")
        yield Line("root", "record", "weak" if report.problems else "ok", why, "amem reindex" if report.problems else "")


def _databases(context: Context) -> Iterator[Line]:
    """Each SQLite file of the root: whole, and how much it holds."""
    from amem.settings import database

    for path in (context.root.index, context.root.usage, context.root.ledger):
        if not path.exists():
            continue
        from sqlite_utils import Database

        connection = database.connect(path, durable=False, read_only=True)
        try:
            whole = connection.execute("pragma quick_check(1)").fetchone()[0]
            found = Database(connection)
            virtual = [table.name for table in found.tables if table.virtual_table_using]
            shadows = tuple(f"{name}_" for name in virtual)
            counts = {table.name: table.count for table in found.tables if table.name not in virtual and not table.name.startswith(shadows)}
        except database.Error as error:
            whole, counts = str(error), {}
        finally:
            connection.close()
        if whole == "ok":
            yield Line("root", path.name, "ok", ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "empty")
        else:
            fix = "amem reindex" if path == context.root.index else f"restore {path} from a backup"
            yield Line("root", path.name, "missing", f"damaged: {whole}", fix)


def _prices(context: Context) -> Line:
    from amem.settings import prices

    try:
        found = prices.load(context.root.prices)
    except AmemError as error:
        return Line("root", "prices", "weak", f"amem cost cannot say what anything cost: {error.message}", error.hint or "")
    return Line("root", "prices", "ok", f"for {', '.join(found.models)}" if found.models else "none: amem cost counts in tokens")


def _alarms(context: Context) -> Iterator[Line]:
    """Answers of the last days that did not come from what was asked for."""
    if not context.root.usage.exists():
        return
    from datetime import timedelta

    from amem.egress import identity, meter
    from amem.model import clock

    for found in meter.alarms(context.root, clock.now() - timedelta(days=ALARM_DAYS)):
        yield Line("egress", "answers", "weak", identity.sentence(*found), f"amem usage --since {ALARM_DAYS}d --by session --by model")


def _policy(context: Context) -> Line:
    from amem.policy import engine
    from amem.policy.grants import grants_data

    try:
        found = engine.load(context.root.policy, grants_data(context.grants))
    except AmemError as error:
        return Line("root", "policy", "missing", error.message, error.hint or "")
    return Line("root", "policy", "ok", f"version {found.version}")


def _machine(context: Context) -> Iterator[Line]:
    place = context.where.path
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    state = "ok" if free > SMALL_DISK_BYTES else "weak"
    yield Line("machine", "disk", state, f"{free >> 20:,} MiB free under {place}")


def _harnesses(context: Context, asked: str | None) -> Iterator[Line]:
    from amem.launch.plan import find_program

    for name in registry.names():
        if name == "command" or (asked is not None and name != asked):
            continue
        harness = registry.load(name)
        found = find_program(harness, context.environment)
        if found is not None:
            where = f"{found.pinned} (pinned)" if found.pinned else found.argv[-1]
            yield Line("harness", name, "ok", where)
        elif asked is not None:
            yield Line("harness", name, "missing", "not on PATH and not in amem's cache", harness.install)


def _print_config(context: Context) -> int:
    """Each value in force, with the file or variable it came from."""
    grants = context.grants
    rows: list[tuple[str, Any, str]] = [("root", context.root.path, _where_root(context))]
    source = context.root.grants.name
    rows += [("owner", grants.owner, source), ("default_domain", grants.default_domain or "-", source)]
    for domain, grant in grants.domains.items():
        rows.append((f"grants.{domain}", f"default={grant.default} admit_own={str(grant.admit_own).lower()}", source))
        for pattern, held in grant.principals.items():
            rows.append((f"grants.{domain}.principals.{pattern}", f"read={held.read} write={str(held.write).lower()}", source))
    for name, destination in grants.destinations.items():
        rows.append((f"destinations.{name}", f"ceiling={destination.ceiling} {destination.base_url or ''}".strip(), source))
    for name, value in (*_fields("gates", grants.gates), *_fields("limits", grants.limits)):
        rows.append((name, value, source))
    if context.flags.json:
        print_json({"config": [{"key": key, "value": str(value), "from": origin} for key, value, origin in rows]})
    else:
        print(table(["key", "value", "from"], rows, stretch=1))
    return exits.DONE


def _fields(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    for key, held in value._asdict().items():
        yield f"{name}.{key}", held


def _where_root(context: Context) -> str:
    if context.flags.root:
        return "--root"
    return "AMEM_ROOT" if os.environ.get("AMEM_ROOT") else "default"
