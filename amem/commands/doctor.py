"""`amem doctor`: what a launch needs, what is there, and the command that mends what is missing."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import click

from amem import exits
from amem.cli.context import Context
from amem.cli.output import one_line, print_json, table
from amem.commands import flags
from amem.errors import AmemError, UnavailableError
from amem.harnesses import registry
from amem.harnesses.base import outdated
from amem.launch import backends
from amem.model import clock
from amem.settings import grants as grants_file
from amem.settings.root import INIT
from amem.typed import NamedTuple

SMALL_DISK_BYTES = 1 << 30
LEAST_DISK_BYTES, LEAST_NAMES = 1 << 20, 64
"""A launch makes databases, a home and its mark."""
ALARM_DAYS = 7
CLOCK_SLACK_S = 5.0
BUILT_YEAR = 2026
VERSION_S = 20.0
"""For a harness to say its version; some start slowly."""
_STATE_FOLDERS = ("homes", "quarantine", "running", "snapshots")
_BEGINS_ANEW = {"usage.sqlite": "sessions and what was spent", "ledger.sqlite": "tasks and promotions"}


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


@click.command(epilog="Examples: amem doctor --harness claude    amem doctor --config    amem doctor --apparmor")
@click.option("--harness", metavar="NAME", help="Also say whether this harness could be launched.")
@click.option("--backend", type=click.Choice(backends.ASKED), help="Also say whether this backend could be had.")
@click.option("--apparmor", is_flag=True, help="Print the AppArmor profile for this very install, and nothing else.")
@click.option("--config", is_flag=True, help="Print every value in force and where it came from.")
@click.option("--fix", is_flag=True, help="Print the commands that mend what is missing, and nothing else.")
@click.pass_obj
def command(context: Context, harness: str | None, backend: str | None, apparmor: bool, config: bool, fix: bool) -> int:
    """Check what a launch needs: the true sequence of system calls in a child, the root, keys, harnesses."""
    if config:
        return _print_config(context)
    if apparmor:
        return _print_profile()
    if harness is not None:
        registry.load(harness)
    parts = {
        "backend": _backend(), "backends": _backends(context, backend), "root": _root(context), "machine": _machine(context),
        "harness": _harnesses(context, harness),
    }  # fmt: skip
    lines = [line for area, found in parts.items() for line in _as_far_as_it_goes(context, area, found)]
    healthy = all(line.state != "missing" for line in lines)
    if context.flags.json:
        print_json({"checks": [line.shape() for line in lines], "ok": healthy})
    elif fix:
        for mends in dict.fromkeys(line.fix for line in lines if line.fix and line.state in ("missing", "weak")):
            print(mends)
    else:
        rows = [[line.state, f"{line.area} / {line.name}", line.why] for line in lines]
        well = {at for at, line in enumerate(lines) if line.state not in ("missing", "weak")}
        print(table(["state", "check", "what was found"], rows, whole=well))
        for at, line in enumerate(lines):
            if at not in well:
                print(f"\n{line.state}: {line.area} / {line.name}: {one_line(line.why)}")
                if line.fix:
                    print(f"try: {line.fix}")
    return exits.DONE if healthy else exits.ERROR


def _as_far_as_it_goes(context: Context, area: str, lines: Iterator[Line]) -> Iterator[Line]:
    """The lines of an area; what keeps the rest of it from being looked at is the last one, and the other areas are still shown."""
    from amem.settings import database

    try:
        yield from lines
    except AmemError as error:
        yield Line(area, "look", "missing", error.message, error.hint or "")
    except (OSError, database.Error) as error:
        yield Line(area, "look", "missing", f"not to the end: {error}", _looked(context, error))


def _looked(context: Context, error: Exception) -> str:
    """The command that shows what kept the doctor from looking; of a full disk SQLite may say no more than that it could not write."""
    return _room(context) if any(word in str(error) for word in ("full", "disk I/O")) else f"ls -la {shlex.quote(str(context.where.state))}"


def _room(context: Context) -> str:
    """The command that shows what room there is for the root."""
    return f"df -h {shlex.quote(str(context.where.path))}; df -i {shlex.quote(str(context.where.path))}"


def _backend() -> Iterator[Line]:
    from amem.sandbox import doctor

    for check in doctor.checks():
        yield Line(check.area, check.name, check.state, check.why or "", check.fix or "")


def _backends(context: Context, asked: str | None) -> Iterator[Line]:
    """Each way of confining a session that is not the usual one, and what it would take."""
    current = backends.image(context.where)
    if current is not None:
        yield _image(context, current)
    else:
        state = "missing" if asked == "image" else "ok"
        yield Line("backend", "image", state, "none was unpacked: a session is shown this machine's programs", "make image unpack")
    yield Line("backend", "relay", "ok", "needs what the namespaces need")
    if not any(_barred(context)):
        yield _unconfined(context)
    for row in backends.BACKENDS.values():
        if not row.proven:
            state, why = "not_proven", f"{row.summary}: its profile and commands are built (--dry-run), and start nothing"
            yield Line("backend", row.name, "missing" if asked == row.name else state, why, "amem launch --backend auto")


def _image(context: Context, current: str) -> Line:
    from amem.launch import images

    try:
        os.close(images.hold(current))
    except UnavailableError as error:  # as a launch would
        return Line("backend", "image", "missing", error.message, error.hint or "")
    found = next((image for image in images.images(context.where) if image.current), None)
    has = ", ".join(f"{name} {version}" for name, version in found.harnesses.items()) if found is not None else ""
    return Line("backend", "image", "ok", f"{os.path.basename(current)}: {has or 'no harness of amem'}")


def _unconfined(context: Context) -> Line:
    """A session without a sandbox could change what the root holds, so those that were are named for good."""
    from amem.egress import reading

    ran = [row for row in reading.sessions(context.where) if row["backend"] == backends.UNCONFINED.name]
    if ran and context.principal != context.grants.owner:
        ran = [row for row in ran if row["domain"] in context.domains]
    if not ran:
        return Line("backend", "unconfined", "ok", "no session of this root ran without a sandbox; auto never picks that")
    last, times = ran[0], "one session" if len(ran) == 1 else f"{len(ran)} sessions"
    why = f"{times} ran without a sandbox, last {last['id']} at {last['started_at']}; they could have changed anything that is yours"
    return Line("backend", "unconfined", "weak", why, "amem verify")


def _print_profile() -> int:
    from amem.sandbox import apparmor, doctor

    path = doctor.program_path()
    if os.path.basename(path) == "__main__.py":
        raise UnavailableError("a profile goes by the script's path, and `python -m amem` has none", hint="amem doctor --apparmor")
    try:
        print(apparmor.profile(path), end="")
    except ValueError as error:
        raise UnavailableError(str(error), hint="install amem at another path") from error
    return exits.DONE


def _barred(context: Context) -> Iterator[Line]:
    """What keeps a launch from the root: a folder that is none, a folder or file that may not be read or written."""
    root = context.where
    read_only = root.path.exists() and bool(os.statvfs(root.path).f_flag & os.ST_RDONLY)
    below = [path for folder in (root.path, root.state) if os.access(folder, os.R_OK | os.X_OK) for path in sorted(folder.iterdir())]
    for path in (root.path, *below) if os.path.lexists(root.path) else ():
        if path in (root.record, root.policy, root.state) or (path.parent == root.state and path.name in _STATE_FOLDERS):
            if not path.is_dir():
                yield Line(
                    "root", "access", "missing", f"{path} is no folder", f"mv {shlex.quote(str(path))} {shlex.quote(f'{path}.away')}"
                )
                continue
        elif path.is_symlink() and not path.exists():
            continue
        written = not read_only and (path in (root.record, root.state) or path.parent == root.state)
        if not os.access(path, os.R_OK | (os.W_OK if written else 0) | (os.X_OK if path.is_dir() else 0)):
            about = path.stat()
            why = f"you may not read{' and write' if written else ''} {path} ({stat.filemode(about.st_mode)}, of user {about.st_uid})"
            mend = f"chmod u+rwX {shlex.quote(str(path))}"
            yield Line("root", "access", "missing", why, mend if about.st_uid == os.geteuid() else f"sudo chown {os.geteuid()} {path}")


def _root(context: Context) -> Iterator[Line]:
    root = context.where
    barred = list(_barred(context))
    yield from barred
    if barred:
        return
    if not root.grants.is_file():
        yield Line("root", "grants", "missing", f"there is no root at {root.path}", root.command(INIT))
        return
    try:
        grants = grants_file.load(root.grants)
        keys = context.credentials
    except AmemError as error:
        yield Line("root", "settings", "missing", error.message, error.hint or "")
        return
    if context.principal != grants.owner:
        yield Line("root", "grants", "ok", f"{root.path}: owner {grants.owner}, to whom alone the rest of it is shown")
        return
    yield Line("root", "grants", "ok", f"{root.path}: owner {grants.owner}, {', '.join(grants.domains)}")
    yield _modes(context)
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
    if os.statvfs(root.path).f_flag & os.ST_RDONLY:
        yield Line("root", "disk", "missing", f"{root.path} cannot be written: its file system is read-only", f"findmnt -T {root.path}")
        return  # the databases cannot even be opened to be read there
    yield from _databases(context)
    yield from _alarms(context)
    if (root.state / "erasing").is_dir():
        from amem.memory.erase import unfinished

        for ids in unfinished(root):
            yield Line("root", "erasure", "weak", f"of {', '.join(ids)}: it was cut short", f"amem erase {' '.join(ids)} --why …")
    if root.index.exists():
        from amem.record.index import Index

        index = Index.open(root)
        try:
            report = index.refresh(full=True)
        finally:
            index.close()
        why = f"{report.entries} entries" + (f", {len(report.problems)} files with a problem" if report.problems else "")
        yield Line("root", "record", "weak" if report.problems else "ok", why, "amem reindex" if report.problems else "")


def _modes(context: Context) -> Line:
    """What is the owner's alone is."""
    root = context.root
    open_to_others = [
        path for path in (root.path, root.record, root.state, root.homes, root.credentials) if path.exists() and path.stat().st_mode & 0o077
    ]
    if not open_to_others:
        return Line("root", "modes", "ok", "only you may read it")
    named = " ".join(shlex.quote(str(path)) for path in open_to_others)
    return Line("root", "modes", "weak", f"other users may look into {named}", f"chmod go= {named}")


def _databases(context: Context) -> Iterator[Line]:
    """Each SQLite file of the root: whole, and how much it holds."""
    from amem.settings import database

    for path in (context.root.index, context.root.usage, context.root.ledger):
        if not path.exists():
            continue
        if not path.is_file():
            yield Line("root", path.name, "missing", f"{path} is no file", f"mv {shlex.quote(str(path))} {shlex.quote(f'{path}.away')}")
            continue
        try:
            why = database.damage(path)
            held = "" if why else ", ".join(f"{count} {name}" for name, count in _counts(path).items() if count) or "empty"
        except database.Error as error:
            yield Line("root", path.name, "missing", f"it could not be looked at: {error}", _looked(context, error))
            continue
        if why is None:
            yield Line("root", path.name, "ok", held)
            continue
        fix, lost = "amem reindex", ""
        if path != context.root.index:  # a journal of the damaged file would be played into what takes its place
            fix = f"restore {path} from a backup, and remove {path}-wal and {path}-shm"
            lost = f"; without a backup move these files away: {_BEGINS_ANEW[path.name]} begin anew, entries stay"
        yield Line("root", path.name, "missing", f"damaged: {why}{lost}", fix)
    from amem.record import sealed

    if sealed.gone(context.root.state):
        path = context.root.state / sealed.KEY
        yield Line("root", path.name, "missing", "it is gone: what was sealed with it cannot be read", f"restore {path} from a backup")


def _counts(path: Path) -> dict[str, int]:
    """How many rows each table of a database has, but for those that SQLite keeps for its indexes of words."""
    from sqlite_utils import Database

    from amem.settings import database

    connection = database.connect(path, durable=False, read_only=True)
    try:
        found = Database(connection)
        virtual = [table.name for table in found.tables if table.virtual_table_using]
        shadows = tuple(f"{name}_" for name in virtual)
        return {table.name: table.count for table in found.tables if table.name not in virtual and not table.name.startswith(shadows)}
    finally:
        connection.close()


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

    from amem.egress import identity, reading
    from amem.model import clock

    for found in reading.alarms(context.root, clock.now() - timedelta(days=ALARM_DAYS)):
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
    yield _disk(context)
    yield _clock(context)


def _disk(context: Context) -> Line:
    """What is left for the root; without a little of it no session can be begun."""
    place = context.where.path
    while not place.exists():
        place = place.parent
    about = os.statvfs(place)
    if not about.f_blocks:
        return Line("machine", "disk", "ok", f"the file system of {place} does not say what is free")
    free = about.f_bavail * about.f_frsize
    names = about.f_favail if about.f_files else LEAST_NAMES  # a file system that counts none says 0
    most = about.f_bfree * about.f_frsize if os.geteuid() == 0 else free  # root may use what is kept back from others
    none = most < LEAST_DISK_BYTES or names < LEAST_NAMES
    state = "missing" if none else "ok" if free > SMALL_DISK_BYTES else "weak"
    left = f"{free >> 20:,} MiB free" if names >= LEAST_NAMES else f"room for {names} more files"
    why = f"{left} under {place}{', too little to begin a session' if none else ''}"
    return Line("machine", "disk", state, why, _room(context) if state != "ok" else "")


def _clock(context: Context) -> Line:
    """Leases, day limits and the order of events go by this machine's clock: it must not be behind what the root already holds."""
    now = clock.now()
    state = context.where.state
    logs = [path.stat().st_mtime for path in state.glob("*.jsonl")] if os.access(state, os.R_OK | os.X_OK) else []
    ahead_s = max(logs, default=0.0) - now.timestamp()
    if ahead_s > CLOCK_SLACK_S or now.year < BUILT_YEAR:
        why = f"it says {clock.stamp(now)}, and the root was written to {ahead_s:.0f} s after that" if ahead_s > 0 else clock.stamp(now)
        return Line("machine", "clock", "weak", why, "set the clock")
    return Line("machine", "clock", "ok", clock.stamp(now))


def _harnesses(context: Context, asked: str | None) -> Iterator[Line]:
    from amem.launch.plan import beyond, find_program, version_of

    looked_for = {name: registry.load(name) for name in registry.names() if name != "command" and asked in (None, name)}
    found = {name: program for name, harness in looked_for.items() if (program := find_program(harness, context.environment)) is not None}
    for name, program in found.items():
        harness, version = looked_for[name], program.pinned or version_of(program) or _version(program)
        where = f"{program.pinned} (pinned)" if program.pinned else f"{version}: {program.argv[-1]}"
        old, unknown = outdated(harness, version), beyond(harness, version)
        yield Line("harness", name, "weak" if old or unknown else "ok", old or unknown or where, harness.install if old else "")
    if asked in looked_for and not found:
        yield Line("harness", asked, "missing", "not on PATH and not in amem's cache", looked_for[asked].install)
    elif not found and asked is None:
        yield Line("harness", "programs", "weak", "none is on PATH or in amem's cache", looked_for["claude"].install)
    home = context.environment.get("HOME") or os.path.expanduser("~")
    tables = [registry.load(name) for name in registry.names()]
    logins = [each.name for each in tables if each.login is not None and os.path.isfile(os.path.join(home, each.login.file))]
    yield Line("harness", "logins", "ok", f"found for {', '.join(logins)}" if logins else "none: --auth key or gateway needs none")


def _version(program: registry.Program) -> str:
    """What a harness of this machine calls itself, in one line."""
    from amem.sandbox import doctor

    printed = doctor.said((*program.argv, "--version"), program.roots, VERSION_S)
    return one_line(printed.strip()[:80]) or "it does not say its version"


def _print_config(context: Context) -> int:
    """Each value in force, with the file or variable it came from."""
    from amem.commands.in_force import settings

    flags.owner_alone(context, "what is in force")
    rows = [("root", str(context.root.path), _where_root(context)), *settings(context.root, context.grants)]
    if context.flags.json:
        print_json({"config": [{"key": key, "value": value, "from": origin} for key, value, origin in rows]})
    else:
        print(table(["key", "value", "from"], rows, stretch=1))
    return exits.DONE


def _where_root(context: Context) -> str:
    if context.flags.root:
        return "--root"
    return "AMEM_ROOT" if os.environ.get("AMEM_ROOT") else "default"
