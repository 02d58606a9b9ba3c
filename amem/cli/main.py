"""The entry point: version and overview first, the stage of a launch next, click last.

A launch forks its stage before anything else is imported and before any key is read, so that the sandbox is built from a
small single-threaded process.
"""

import gc
import os
import sys

from amem import __version__

TYPE_CHECKING = False  # `typing` would be half of what `--version` takes
if TYPE_CHECKING:
    from typing import NoReturn

    from amem.cli.globals import Globals
    from amem.errors import AmemError
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
        _leave(0, f"amem {__version__}\n")
    if argv in ([], ["--help"], ["-h"]) and "_AMEM_COMPLETE" not in os.environ:
        from amem.cli.table import overview

        _leave(0, f"{overview(__version__)}\n")
    try:
        code = run(argv, _stage(argv))
    except KeyboardInterrupt:  # while it was still loading
        from amem import exits

        code = exits.INTERRUPTED
    _leave(code)


def _leave(code: int, last: str = "") -> "NoReturn":
    """Exit, with what was printed written out or its loss told."""
    try:
        sys.stdout.write(last)
        sys.stdout.flush()
    except BrokenPipeError:
        code = code or 1
    except OSError as error:
        code = code or 1
        sys.stderr.write(f"amem: stdout: {error.strerror}\ntry: df -h; df -i\n")
    try:
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
    from amem.errors import AmemError

    flags = global_flags.Globals(json="--json" in argv)
    try:
        flags, rest = global_flags.split(argv)
        code = _plain_launch(flags, rest, stage)
        if code is None:
            with stand_ins():
                import click  # noqa: F401
            from amem.cli.group import invoke

            code = invoke(flags, rest, stage)
        sys.stdout.flush()
        return code
    except AmemError as error:
        return _failed(error, flags)
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return exits.ERROR
    except Exception as error:
        from amem.cli import faults
        from amem.settings import root

        if isinstance(error, OSError) and error.filename is None and _output_is_lost():
            error.filename = "stdout"
        if (no := faults.told(error, root.locate(flags.root, os.environ))) is None:
            raise
        return _failed(no, flags)
    finally:
        if stage is not None:
            stage.close()
        if (telemetry := sys.modules.get("amem.telemetry")) is not None:
            telemetry.close()


def _output_is_lost() -> bool:
    """Whether there is no room for what was printed; the rest of it is dropped then."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()
        return True
    return False


def _drop_output() -> None:
    """Whoever read our output is gone, or has no room: nothing more can be said to them."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _failed(error: "AmemError", flags: "Globals") -> int:
    """Print the error, with a hint that is about the same root, and return its exit code."""
    from amem.cli import output

    if flags.root is not None and error.hint is not None:
        error.hint = output.rooted(error.hint, flags.root)
    output.fail(error, flags.json)
    return error.exit_code


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
