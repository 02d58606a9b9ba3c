"""Run one launch: the order of everything, and the exit code.

Composition root of a session. The stage process exists already. Settings and plan come first, then the sandbox; only when the
harness runs are the packages of egress and memory server imported, in their own thread.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from amem.errors import AmemError, ConfigError, UnavailableError
from amem.harnesses import base
from amem.harnesses.base import Auth, LaunchFacts
from amem.launch import backends, care, instructions, trees
from amem.launch.inside import memory_dir, own_bin, write_own_bin
from amem.launch.plan import PORT, Asked, Plan, beyond, plan, version_of
from amem.launch.presence import Presence
from amem.launch.shown import import_folder, key_folder, own_folders
from amem.model import clock, ids
from amem.model.label import Label
from amem.sandbox import spec, surroundings, worktree
from amem.typed import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from amem.harnesses.base import Harness
    from amem.launch.attend import Outcome, Sitting
    from amem.launch.door import Door
    from amem.launch.kept import Kept
    from amem.launch.login import Carried
    from amem.launch.ports import Ports
    from amem.sandbox.child import Stage
    from amem.sandbox.plan import Step
    from amem.sandbox.run import Running
    from amem.settings.credentials import Credentials
    from amem.settings.grants import Grants
    from amem.settings.root import Root


HOOK = ("/opt/memory/memory",)
SOCKET_PLACE = "/run/amem"
RELAY = (*HOOK, "relay", str(PORT), f"{SOCKET_PLACE}/egress.sock")
"""What starts a harness whose egress is reached through a relay inside."""

NOTHING = os.path.join(os.path.dirname(os.path.realpath(base.__file__)), "assets", "nothing.json")
"""What stands in place of settings that could switch the hooks off: Gemini ends at a file that is no JSON (0.61.0, 2026-11)."""

OWN_TREE = (
    "amem is imported from this work tree: its own folders are read-only inside, but a module that a session adds beside them "
    "(sitecustomize.py, say) can run when amem next starts; look at `git status` first"
)


REPLACED = (
    "{named}: changed outside while the session ran; where a program replaced it (as `git config` and some editors do), the session could "
    "write it from then on: read it before a program obeys it"
)
"""What was mounted on a name to keep it read-only inside goes when the host gives that name to another file (rename(2)); and an inode's
number can be another file's by then."""

MOVED = "{path} was moved, replaced or deleted while the session ran: what it left there for programs to obey was not looked for"


class Settings(NamedTuple):
    """What a launch works with."""

    root: "Root"
    grants: "Grants"
    credentials: "Credentials"
    environment: Mapping[str, str]
    domain: str


class Prepared(NamedTuple):
    """A session that is ready to start: everything that can be refused was."""

    id: str
    plan: Plan
    launch: base.Launch
    spec: spec.SandboxSpec
    home: str
    projection: Path
    """The host's folder of what is shown at `/memory`."""
    board: bool
    """The harness's own subagents become tasks."""
    tree: spec.Tree = spec.Tree()
    """What the work tree is to git."""
    login: "Carried | None" = None
    """What the harness's login on this machine holds, on a subscription."""
    instructions: str | None = None
    """What to say of the tree's instruction files that are not approved."""
    door: "Door | None" = None
    """Where the egress listens, if not inside the sandbox."""

    @property
    def socket_folder(self) -> str:
        """The folder of the socket that a relay leads to."""
        return _socket_folder(self.home)


def _socket_folder(home: str) -> str:
    homes, session = os.path.split(home)
    return os.path.join(os.path.dirname(homes), "doors", session)


def prepare(asked: Asked, settings: Settings, door: "Door | None" = None) -> Prepared:
    """Resolve a launch into arguments, files and a sandbox. Makes nothing on disk. Raises AmemError.

    `door` of an earlier preparation of the same session, where it is being served by then.
    """
    surroundings.check_umask()  # before a folder of the root is made that nobody could enter again
    found = plan(asked, settings.root, settings.grants, settings.credentials, settings.environment, settings.domain)
    opened = door or _door(found)
    try:
        return _prepared(asked, settings, found, opened)
    except BaseException:
        if opened is not None and door is None:
            opened.close()
        raise


def _prepared(asked: Asked, settings: Settings, found: Plan, door: "Door | None") -> Prepared:
    session = asked.session_id or ids.draw("session")
    home = str(settings.root.homes / session)
    facts = _facts(asked, found, session, home, door)
    launch = base.launch(found.harness, facts)
    host_home = settings.environment.get("HOME") or os.path.expanduser("~")
    git = surroundings.git_settings(host_home, settings.environment.get("XDG_CONFIG_HOME"), found.place.workdir)
    login = _login(found.harness, host_home, settings.credentials) if found.auth is Auth.SUBSCRIPTION else None
    gated = settings.grants.gates.instruction_files == "approved"
    obeyed = instructions.find(settings.root, found.place, whole=gated)
    masked = instructions.maskable(obeyed, found.workdir) if gated else ()
    if masked and not found.backend.confined:
        named = ", ".join(each.name for each in masked)
        raise ConfigError(f"{named}: not approved, and without a sandbox nothing can hide it", hint="amem instructions approve")
    switches = tuple(care.existing(found.place, found.harness.masked))
    covered, emptied = (switches, ()) if found.backend.name == "seatbelt" else ((), switches)
    inside = spec.SandboxSpec(
        argv=(*RELAY, *launch.argv) if found.backend.door == backends.SOCKET else launch.argv,
        env=_environment(asked, settings, found, home, facts.home, launch.env, login.variables if login else {}),
        workdir=found.place.workdir,
        cwd=found.place.cwd,
        home=home,
        home_inside=facts.home,
        port=PORT,
        memory_dir=None,
        binds=(
            *_binds(found),
            *(spec.Bind(NOTHING, path) for path in emptied),
            *surroundings.terminal(settings.environment, host_home, facts.home, found.image or ""),
        ),
        interactive=asked.interactive,
        limits=found.limits,
        allow_ptrace=asked.traces,
        ports=asked.ports,
        host_ports=asked.host_ports,
        read_only=asked.only_shown,
        hidden=tuple(dict.fromkeys((*covered, *(each.path for each in masked), *key_folder()))),
        protect=(
            *care.protected(found.place, git_config=asked.git_config_writable, config=asked.config_writable),
            *surroundings.git_hooks(git, host_home, found.place.workdir),
        ),
        added=care.added(found.place, found.harness.demands),
        git=surroundings.git_identity(git),
        listens=found.backend.door == backends.INSIDE,
        image=found.image,
    )
    return Prepared(
        id=session, plan=found, launch=launch, spec=inside, home=home, projection=settings.root.state / "projections" / session,
        tree=worktree.look(found.place.workdir), board=asked.subagents == "board", login=login,
        instructions=instructions.sentence(obeyed, masked=gated), door=door,
    )  # fmt: skip


def _facts(asked: Asked, found: Plan, session: str, home: str, door: "Door | None") -> LaunchFacts:
    """What the harness's adapter has to know of the session. Without a sandbox paths are the host's."""
    own = found.backend.door == backends.LOOPBACK
    return LaunchFacts(
        auth=found.auth,
        destination=found.destination,
        program=found.program.argv,
        egress_url=f"http://127.0.0.1:{(door and door.port) or PORT}",
        session=session,
        workdir=found.place.cwd,
        placeholder=door.token.reveal() if door is not None else f"amem-{session}",
        token=door.token.reveal() if door is not None else None,
        home=home if own else spec.HOME,
        hook=(f"{own_bin(home)}/memory",) if own else HOOK,
        model=found.model,
        prompt=asked.prompt,
        args=found.args,
        server_tools=found.server_tools,
    )


def _environment(
    asked: Asked, settings: Settings, found: Plan, home: str, home_inside: str, *of_harness: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """All that the harness finds in its environment: of the owner's what is of use, then what is the harness's own."""
    own, image = settings.environment, found.image or ""
    path = f"{own_bin(home)}:{own.get('PATH', '')}"
    if found.backend.confined:
        path = surroundings.search_path("" if found.image else own.get("PATH", ""), found.shown)
    if asked.only_shown:  # to judge what another session wrote
        path = surroundings.behind(path, found.writable)
    variables = {
        **spec.base_env(own, home_inside, "agent", path, surroundings.shell(image)),
        **(spec.CONFINED if found.backend.confined else {}),
        **surroundings.data_paths(own, image, () if found.image else found.read),
    }
    for more in of_harness:
        variables |= more
    return tuple(variables.items())


def _door(found: Plan) -> "Door | None":
    if found.backend.door == backends.INSIDE:
        return None
    from amem.launch.door import Door

    return Door(loopback=found.backend.door == backends.LOOPBACK)


def _login(harness: "Harness", host_home: str, credentials: "Credentials") -> "Carried | None":
    """The harness's login on this machine. Raises UnavailableError."""
    from amem.launch.login import read_login

    return read_login(harness, host_home, credentials.find)


def _binds(found: Plan) -> tuple[spec.Bind, ...]:
    """The interpreter that runs the hooks, the harness, what the owner added, and amem itself where it lies in the tree."""
    trees = (str(found.workdir), *(bind.target for bind in found.binds if bind.writable))
    image = found.image or ""
    binds = [
        *found.interpreter,
        *(spec.Bind(image + root, root, real=True) for root in found.program.roots),
        *found.binds,
        *(bind for tree in trees for bind in spec.own_paths(tree, *own_folders())),
    ]
    return tuple({bind.target: bind for bind in binds}.values())


def launch(
    asked: Asked, settings: Settings, stage: "Stage", on_output: Callable[[int, bytes], None], note: Callable[[str], None]
) -> "Outcome":
    """Run a session from start to end. Raises AmemError when it could not start; nothing of it is then left."""
    ready = prepare(asked, settings)
    presence = Presence(settings.root, ready.id)

    def sitting() -> "Sitting":
        from amem.launch.attend import Outcome, Sitting
        from amem.launch.composition import Composition
        from amem.launch.served import Served

        work, outcome = Composition(ready, settings), Outcome(session=ready.id, label=ready.plan.label)
        return Sitting(
            asked=asked, ready=ready, work=work, served=Served(work.serve), presence=presence, outcome=outcome, on_output=on_output
        )

    try:
        return confine(ready, sitting, settings, stage, note)
    finally:
        presence.end()


def confine(
    ready: Prepared, seated: "Callable[[], Sitting]", settings: Settings, stage: "Stage", note: Callable[[str], None], *,
    at_home: bool = False,
) -> "Outcome":  # fmt: skip
    """Make the home and the sandbox, keep the session's row, and attend to it. Raises AmemError when it could not start.

    `seated` is asked for all that takes part while the stage builds the sandbox. `at_home` where the home is there already.
    """
    with ExitStack() as ends, ExitStack() as unless_started:
        if ready.plan.image is not None:
            ends.callback(os.close, _hold_image(ready.plan.image))
        if not at_home:
            make_home(ready)
        unless_started.callback(remove_home, ready)
        unless_started.callback(stage.close)
        if ready.door is not None:
            ends.callback(ready.door.close)
        if not ready.plan.backend.confined:
            note(backends.LOUD)
        with _room(settings.root):
            _write_home(ready)
            sandbox = confined(ready, settings)
        bounded = bound(stage, settings, ready)
        stage.order(sandbox, None if ready.plan.backend.confined else _bare(sandbox))
        # What comes now is imported and done while the sandbox is being built; its harness waits for the end of it.
        from amem.egress import meter

        sitting = seated()
        outcome = sitting.outcome
        # Whoever closes a store last writes its log back, and waits for the disk: that is done once, at the end.
        usage = meter.connect(settings.root.usage, durable=False)
        ends.callback(usage.close)
        with meter.unsynced(usage):
            meter.enter_session(usage, _row(sitting, settings))

        def start() -> "Running":
            inside = bounded and joined(stage, settings, ready, note)
            running = stage.start(sandbox)
            unless_started.pop_all()
            ends.callback(_remove, str(ready.projection))
            _keep_row(settings, running)
            if inside:
                from amem.sandbox import scope

                running.memory = scope.memory(ready.id, running.pid)
            return running

        try:
            _run(sitting, settings, start, ends, note)
        except BaseException as error:
            for sentence in outcome.notes:  # a session may have brought this about: what it left is told all the same
                note(sentence)
            if isinstance(error, AmemError):
                outcome.exit, outcome.reason = error.exit_code, error.message
            if _no_room(error):
                outcome.reason = "disk_full"
                why = f"the disk of {settings.root.path} filled up while the session ran, and not all that came of it is kept"
                raise UnavailableError(why, hint=f"df -h {settings.root.path}; df -i {settings.root.path}") from error
            raise
        finally:
            sitting.presence.make_room()
            _end_row(sitting, settings)
        return outcome


def _end_row(sitting: "Sitting", settings: Settings) -> None:
    """Keep how the session ended, on the reserve where there is no room but that. Raises the database's error."""
    from amem.egress import meter

    id, outcome, ended_at = sitting.ready.id, sitting.outcome, clock.stamp(clock.now())
    try:
        meter.end_session(settings.root, id, exit=outcome.exit, reason=outcome.reason, ended_at=ended_at)
    except Exception as error:
        if not _no_room(error):
            raise
        sitting.presence.give_back()
        meter.end_session(settings.root, id, exit=outcome.exit, reason=outcome.reason, ended_at=ended_at)


def _no_room(error: BaseException) -> bool:
    """Whether a disk was too full for it; SQLite has words of its own for that."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    from amem.settings import database

    return isinstance(error, database.OperationalError) and any(word in str(error) for word in ("is full", "disk I/O"))


def _run(sitting: "Sitting", settings: Settings, start: "Callable[[], Running]", ends: ExitStack, note: Callable[[str], None]) -> None:
    """Look how things stand, start the harness, attend to it until it ends, tell what it left. Raises AmemError."""
    from amem.launch.attend import attend

    ready = sitting.ready
    before = _before(ready)
    trees.mark(settings.root, ready.plan.writable, ready.plan.label, ready.id)
    kept = _kept(sitting, settings, note)
    ports = _ports(settings, ready, note)
    if ports is not None:
        ends.callback(ports.end)
    if ready.plan.harness.impatient:
        sitting.served.ready()
    running = start()
    if ready.door is not None:
        running.listener_fd = ready.door.take()
    if ports is not None:
        ports.serve(running)
    for remark in _remarks(sitting, settings, running):
        note(remark)
    try:
        with _watched(sitting, note) as watched:
            attend(watched, running)
    finally:
        try:
            _tell_left(sitting, before)
        finally:
            if kept is not None:
                kept.after(moved=before.moved(ready.spec.workdir))


def _keep_row(settings: Settings, running: "Running") -> None:
    """Wait for the disk: no call is served before the session is on it. The harness has begun to load itself meanwhile."""
    from amem.egress import meter

    try:
        meter.to_disk(settings.root.usage, folder=True)
    except OSError:
        running.kill()
        raise


class Before(NamedTuple):
    """How things stood when the session began."""

    moment: tuple[int, int]
    """ns since the epoch, and since the machine started."""
    marks: dict[str, str]
    """What programs of the host obey in the tree, by path, and a hash of each."""
    stands: dict[str, tuple[int, int]]
    """Which folder stands at the path of each tree: device and inode."""
    held: dict[str, tuple[int, ...]]
    """Each file or folder that is read-only inside, and how it was."""

    def moved(self, path: str) -> bool:
        """Is another folder there by now, or none?"""
        return care.stands((path,))[path] != self.stands[path]


def _before(ready: Prepared) -> Before:
    moment = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    marks = care.marks(ready.plan.place, ready.tree, ready.spec.protect)
    held = care.held(ready.spec.workdir, ready.tree, ready.spec.protect) if ready.plan.backend.confined else {}
    return Before(moment, marks, care.stands(ready.plan.writable), held)


def _tell_left(sitting: "Sitting", before: Before) -> None:
    """Name what the session left for programs of the host to obey. Where another folder stands by now, nothing is looked for."""
    from amem.launch import left  # after the session: a launch does not wait for it

    ready, outcome = sitting.ready, sitting.outcome
    moved = {path for path in before.stands if before.moved(path)}
    after = before.marks if ready.spec.workdir in moved else care.marks(ready.plan.place, ready.tree, ready.spec.protect)
    trees = tuple(path for path in before.stands if path not in moved) if not sitting.asked.only_shown else ()
    known = worktree.changed(before.marks, after)
    outcome.changed, told = left.report(ready.spec.workdir, trees, known, left.Moment(*before.moment), old=ready.tree.git_dirs)
    outcome.notes += [*(MOVED.format(path=path) for path in sorted(moved)), *told]
    if replaced := [path for path, was in before.held.items() if care.stamp(path) not in (was, ())]:
        outcome.notes.append(REPLACED.format(named=", ".join(sorted(replaced))))


def _remarks(sitting: "Sitting", settings: Settings, running: "Running") -> Iterator[str]:
    """What the person should know of the session that begins."""
    ready, label = sitting.ready, sitting.ready.plan.label
    if sitting.asked.backend == "auto" and backends.image(settings.root) is not None:
        yield f"backend {ready.plan.backend.name}: {ready.plan.backend.summary}"
    yield from running.warnings
    shown = (ready.spec.workdir, *(bind.target for bind in ready.spec.binds))
    for path in worktree.borrowed(ready.spec.workdir, ready.tree) if ready.plan.backend.confined else ():
        if not any(spec.is_below(path, place) for place in shown):
            yield f"the repository borrows objects from {path}, which is not shown, so git does not find them inside: --ro {path}"
    if ready.plan.unserved:
        yield f"{ready.plan.unserved}; model calls of this session are refused"
    if label.exceeds(sitting.asked.label or Label.PUBLIC):
        yield f"this session starts at {label}: a session that had read {label} entries could write its tree"
    if ready.instructions is not None:
        yield ready.instructions
    if (unknown := beyond(ready.plan.harness, version_of(ready.plan.program))) is not None:
        yield unknown
    if import_folder(ready.spec.workdir):
        yield OWN_TREE


@contextmanager
def _watched(sitting: "Sitting", note: Callable[[str], None]) -> "Iterator[Sitting]":
    """The same sitting, with a report when nothing is heard of it; on a person's terminal that person sees it."""
    if sitting.asked.interactive:
        yield sitting
        return
    from amem.launch.stall import Watch

    with Watch(sitting.ready.id, note) as watch:

        def on_output(stream: int, data: bytes) -> None:
            watch.heard()
            sitting.on_output(stream, data)

        sitting.work.heard = watch.heard
        yield sitting._replace(on_output=on_output)


def _bare(sandbox: spec.SandboxSpec) -> "tuple[Step, ...]":
    from amem.sandbox.plan import bare

    return bare(sandbox)


def _hold_image(image: str) -> int:
    """A lock that keeps the image from being removed while the session runs. Raises UnavailableError."""
    from amem.launch.images import hold

    return hold(image)


def bound(stage: "Stage", settings: Settings, ready: Prepared) -> bool:
    """Put the stage into a cgroup with the session's limits, where this user's service manager makes one."""
    if not os.path.exists(f"{settings.environment.get('XDG_RUNTIME_DIR', '')}/systemd/private"):
        return False
    from amem.sandbox import scope

    stage.moved = scope.hold(ready.id, stage.pid, ready.plan.limits, settings.environment)
    return stage.moved


def joined(stage: "Stage", settings: Settings, ready: Prepared, note: Callable[[str], None]) -> bool:
    """Whether all that was made of the sandbox is in its cgroup: before the harness starts, which would stay outside of it."""
    from amem.sandbox import scope

    if scope.joined(ready.id, stage.pid, settings.environment):
        return True
    note("the service manager did not take this session into its scope in time: memory is bounded as without one")
    return False


def _ports(settings: Settings, ready: Prepared, note: Callable[[str], None]) -> "Ports | None":
    """Open the ports that were asked for, logged before they are; None for none. Raises UnavailableError."""
    if not (ready.spec.ports or ready.spec.host_ports):
        return None
    from amem.launch.ports import opened

    return opened(settings.root.state, ready, note)


def _kept(sitting: "Sitting", settings: Settings, note: Callable[[str], None]) -> "Kept | None":
    """Keep the tree as it is before the session; None where that was not asked for. Raises UnavailableError."""
    if not sitting.asked.snapshot:
        return None
    from amem.launch.kept import Kept

    kept = Kept(settings.root, sitting.ready.spec.workdir, sitting.ready.id, sitting.outcome)
    kept.before(note)
    return kept


def confined(ready: Prepared, settings: Settings) -> spec.SandboxSpec:
    """The sandbox, with what appears at `/opt/memory` and `/memory` and, for a relay, `/run/amem`."""
    binds = (*ready.spec.binds, spec.Bind(str(ready.projection), "/memory"))
    if ready.plan.backend.door == backends.SOCKET:
        binds = (*binds, spec.Bind(ready.socket_folder, SOCKET_PLACE))
    return ready.spec._replace(memory_dir=str(memory_dir(settings.root, image=ready.plan.image is not None)), binds=binds)


def sealed(ready: Prepared, settings: Settings) -> spec.SandboxSpec:
    """The same sandbox with no way to the egress. Raises UnavailableError for a session without one."""
    if not ready.plan.backend.confined:
        raise UnavailableError("without a sandbox nothing that a session left proves anything", hint="amem work --backend auto")
    found = confined(ready, settings)
    return found._replace(listens=True, binds=tuple(bind for bind in found.binds if bind.target != SOCKET_PLACE))


@contextmanager
def _room(root: "Root") -> Iterator[None]:
    """A disk without room is named by the root that lies on it: of a copy, the error names what was copied, of a write nothing."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UnavailableError(f"{root.path}: {error.strerror}", hint=f"df -h {root.path}; df -i {root.path}") from error


def make_home(ready: Prepared) -> None:
    """Make the private home, and the folder of a relay's socket. A session id that is taken is refused by the directory."""
    try:
        os.mkdir(ready.home, 0o700)
        if ready.door is not None and ready.plan.backend.door == backends.SOCKET:
            ready.door.make_socket(ready.socket_folder)
    except FileExistsError as error:
        raise UnavailableError(f"the session {ready.id} exists already", hint="leave --session-id out") from error
    try:
        ready.projection.mkdir(mode=0o700, parents=True)
    except OSError:
        remove_home(ready)
        raise


def _write_home(ready: Prepared) -> None:
    """Put the harness's files into the home, 0600."""
    if ready.door is not None and ready.door.port is not None:
        write_own_bin(ready.home, ready.door.port)
    files = dict(ready.launch.files)
    if ready.login is not None and ready.login.data:
        from amem.launch.login import over

        name = ready.login.login.file
        files[name] = over(files.get(name), ready.login.data)
    for name, data in files.items():
        path = os.path.join(ready.home, name)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)


def remove_home(ready: Prepared) -> None:
    """A session that never started leaves no home: nothing of a harness ever ran in it."""
    if ready.door is not None:
        ready.door.close()
    _remove(str(ready.projection))
    _remove(ready.home)


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)  # mostly it is empty, and `shutil` takes its time
    except OSError:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _row(sitting: "Sitting", settings: Settings) -> dict[str, Any]:
    """The session as `usage.sqlite` keeps it; one that was served already may hold a task, and have read something."""
    ready, found, session = sitting.ready, sitting.ready.plan, sitting.work.session
    return {
        "id": ready.id, "harness": found.harness.name, "auth": found.auth, "destination": found.destination, "model": found.model,
        "backend": found.backend.name, "label": session.label if session else found.label, "ceiling": found.ceiling,
        "task": session.task if session else None, "handling": found.handling, "domain": settings.domain,
        "workdir": str(found.workdir), "pid": os.getpid(), "started_at": clock.stamp(clock.now()),
    }  # fmt: skip
