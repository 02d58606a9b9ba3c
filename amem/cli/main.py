"""The entry point: version and overview first, the stage of a launch next, click last.

A launch forks its stage before anything else is imported and before any key is read, so that the sandbox is built from a
small single-threaded process.
"""

import errno
import gc
import os
import sys

from amem import __version__

TYPE_CHECKING = False  # `typing` would be half of what `--version` takes
if TYPE_CHECKING:
    from typing import NoReturn

    from amem.cli.globals import Globals
    from amem.sandbox.child import Stage

CONFINED = ("launch", "work")
"""Commands that need a stage."""


def main() -> "NoReturn":
    """Run the command line and exit with its code."""
    # A start makes objects by the ten thousand and no garbage: looking for some every 700 of them is a twelfth of its time.
    gc.set_threshold(50_000, 20, 20)
    argv = sys.argv[1:]
    if any(stream is None or stream.encoding != "utf-8" for stream in (sys.stdin, sys.stdout, sys.stderr)):
        from amem.cli.streams import mend

        mend("--json" in argv)
    if argv == ["--version"]:
        print(f"amem {__version__}")
        sys.exit(0)
    if argv in ([], ["--help"], ["-h"]) and "_AMEM_COMPLETE" not in os.environ:
        from amem.cli.table import overview

        print(overview(__version__))
        sys.exit(0)
    try:
        code = run(argv, _stage(argv))
    except KeyboardInterrupt:  # while it was still loading
        from amem import exits

        code = exits.INTERRUPTED
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    # Threads of the egress may still be importing; what had to be settled was settled by the command itself.
    os._exit(code)


def run(argv: list[str], stage: "Stage | None" = None) -> int:
    """Run one command line and return its exit code; errors are printed here, once."""
    from amem.cli.standins import stand_ins

    with stand_ins():
        import pathlib  # noqa: F401
        import tomllib  # noqa: F401

    from amem import exits
    from amem.cli import globals as global_flags
    from amem.cli import output
    from amem.errors import AmemError, UnavailableError

    as_json = "--json" in argv
    try:
        flags, rest = global_flags.split(argv)
        as_json = flags.json
        code = _plain_launch(flags, rest, stage)
        if code is None:
            with stand_ins():
                import click  # noqa: F401
            from amem.cli.group import invoke

            code = invoke(flags, rest, stage)
        sys.stdout.flush()
        return code
    except AmemError as error:
        output.fail(error, as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone: nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return exits.ERROR
    except OSError as error:
        # A full disk, a file of another user: the machine's no, not a fault of ours.
        what = f"{error.filename}: " if error.filename else "the current directory: " if error.errno == errno.ENOENT else ""
        hint = "df -h; df -i" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "amem doctor"
        output.fail(UnavailableError(f"{what}{error.strerror or error}", hint=hint), as_json)
        return exits.ERROR
    except Exception as error:
        # SQLite's words for the same, and for a damaged file; its module is not named here because most commands never load it.
        if type(error).__name__ not in ("OperationalError", "DatabaseError"):
            raise
        output.fail(UnavailableError(f"a database under the root: {error}", hint="df -h; df -i; amem doctor"), as_json)
        return exits.ERROR
    finally:
        if stage is not None:
            stage.close()
        if (telemetry := sys.modules.get("amem.telemetry")) is not None:
            telemetry.close()


def _plain_launch(flags: "Globals", argv: list[str], stage: "Stage | None") -> int | None:
    """Launch without click, whose loading would keep the harness waiting; None where the command line is for click to read."""
    if argv[:1] != ["launch"] or flags.version or "_AMEM_COMPLETE" in os.environ:
        return None
    from amem.cli import plain
    from amem.commands import launch

    options = plain.read(launch.FLAGS, argv[1:], launch.REST)
    if options is None:
        return None
    from amem.cli.context import Context, of_command
    from amem.settings.root import check_environment

    check_environment(os.environ)
    with of_command("amem launch"):
        return launch.run(Context(flags, os.environ, stage), options)


def _stage(argv: list[str]) -> "Stage | None":
    """Fork the stage when this is a launch and not only its help."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    if "--help" in words or "-h" in words or not any(word in CONFINED for word in words[:6]):
        return None
    from amem.sandbox.child import fork_stage

    return fork_stage()


if __name__ == "__main__":
    main()
