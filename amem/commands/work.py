"""`amem work`: a harness on the next task of the board."""

from dataclasses import replace

import click

from amem.cli.context import Context
from amem.cli.output import note, print_json
from amem.commands import flags, launch, launch_line
from amem.errors import UsageError
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.launch.grading import Grading
    from amem.launch.work import Worked
    from amem.sandbox.child import Nursery, Stage

EPILOG = """\b
Examples:
  amem task create 'Finish the import' --body 'Steps 3 to 5.' --admit
  amem work --harness codex --auth key
  amem work --harness claude --auth key --loop"""

NOT_OF_WORK = ("prompt", "subagents", "snapshot")
"""Flags of `launch` that `work` has not, or has otherwise."""


@click.command(epilog=EPILOG)
@click.option(
    "--subagents",
    type=click.Choice(["board", "harness"]),
    default="board",
    show_default=True,
    help="Subagents become tasks of the board, or run in the harness.",
)
@click.option("--snapshot/--no-snapshot", default=True, help="Keep the tree from before the session, for amem session diff and undo.")
@click.option("--loop", is_flag=True, help="Take one task after another; Ctrl-C ends after the current one, a second Ctrl-C now.")
@click.option("--idle", type=flags.DURATION, default="30s", show_default=True, metavar="DUR", help="With --loop: wait when none is there.")
@click.option("--max-tasks", type=click.IntRange(0), default=0, metavar="N", help="With --loop: end after so many; 0 is no bound.")
@click.option("--task", metavar="ID", help="Take this very task.")
@click.option("--capability", "capabilities", multiple=True, metavar="C", help="As one who holds only these; default: the grant's.")
@click.option(
    "--grade",
    type=click.IntRange(1, 20),
    is_flag=False,
    flag_value=3,
    metavar="[ROUNDS]",
    help="Have another model judge it before it is done; back to the writer at most so often (3).",
)
@click.option("--grade-model", metavar="NAME", help="The model that judges; another one than --model.")
@click.option("--no-prefetch", is_flag=True, help="Put no entries of the record into the prompt.")
@click.pass_obj
def command(context: Context, /, **options: Any) -> int:
    """Claim the best task, run a harness on it, hold its lease meanwhile.

    Exits with 0 when the task stands completed, 4 when it is back in the pool with a handoff, 3 when none can be claimed.
    """
    if options["loop"] and not options["dry_run"]:
        if options["task"] or options["session_id"]:
            raise UsageError("--loop takes whatever comes: it goes with no --task and no --session-id", hint="amem work --help")
        from amem.launch import loop

        if context.stage is not None:
            context.stage.close()  # each worker forks its own
        found = loop.loop(options["idle"], options["max_tasks"], note)
        if isinstance(found, int):
            return found
        context.stage = found
        return _one(context, options, loop.PATIENCE_S)
    return _one(context, options)


# The flags of a launch are the flags of a worker's launch.
command.params[:0] = [flag for flag in launch_line.command.params if flag.name not in NOT_OF_WORK]


def _one(context: Context, options: dict[str, Any], patience_s: float = 0.0) -> int:
    from amem.sandbox.child import fork_nursery, fork_stage

    # Both before a key is read.
    stage, nursery = context.stage or fork_stage(), fork_nursery()
    try:
        return _worked(context, options, patience_s, stage, nursery)
    finally:
        nursery.close()


def _worked(context: Context, options: dict[str, Any], patience_s: float, stage: "Stage", nursery: "Nursery") -> int:
    from amem.launch import grading, run, work
    from amem.ledger.task import known

    if options["task"] is not None:
        known(options["task"])
    asked = launch.asked({**options, "prompt": None})._replace(interactive=False)
    settings = launch.settings(context, asked)
    judged = _grading(options)
    grading.checked(judged, asked)
    if options["dry_run"]:
        return launch.show(run.prepare(asked._replace(prompt=work.BEFORE_THE_CLAIM), settings), settings, context)
    wanted = work.Wanted(
        task=options["task"], capabilities=options["capabilities"], patience_s=patience_s, idle_s=options["idle"], grading=judged,
        prefetch=not options["no_prefetch"],
    )  # fmt: skip
    quiet = context.flags.json
    output = launch.to_stderr if quiet else launch.pass_on
    while True:
        worked = work.work(asked, wanted, settings, stage, nursery, output, note)
        for sentence in (*worked.notes, *(worked.session.notes if worked.session else ())):
            note(sentence)
        again = grading.again(judged, worked.grade)
        if again is None or worked.task is None or worked.outcome != "released":
            break
        judged = again
        asked = asked._replace(session_id=None)
        wanted, stage = replace(wanted, task=worked.task["id"], grading=again, patience_s=0.0), nursery.stage()
    if quiet:
        print_json(_document(worked, context))
    elif worked.task is not None:
        # Where a person closed it meanwhile, that is what it is.
        became = worked.task["status"] if worked.task["status"] in ("completed", "invalidated") else worked.outcome
        note(f"{worked.task['id']} is {became}; read what was left with: amem task show {worked.task['id']}")
    return worked.exit


def _grading(options: dict[str, Any]) -> "Grading | None":
    """How it is judged, as asked. Raises UsageError for half of it."""
    from amem.launch.grading import Grading

    rounds, model = options["grade"], options["grade_model"]
    if rounds is None and model is None:
        return None
    if rounds is None or model is None:
        raise UsageError("--grade and --grade-model go together: by whom, and how often", hint="amem work --help")
    return Grading(model=model, rounds=rounds)


def _document(worked: "Worked", context: Context) -> dict[str, Any]:
    found: dict[str, Any] = {"outcome": worked.outcome}
    if worked.task is not None:
        found["task"] = worked.task
    if worked.session is not None:
        found["session"] = launch.document(worked.session, context)
    if worked.check is not None:
        found["check"] = worked.check
    if worked.grade is not None:
        found["grade"] = {"verdict": worked.grade.verdict, "explanation": worked.grade.explanation, "session": worked.grade.session}
    return found
