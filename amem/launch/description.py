"""What would confine a session, for `--dry-run`: nothing is made, and nothing but this command loads it."""

from amem.launch.run import Prepared, Settings
from amem.sandbox.plan import Step, bare, plan
from amem.typed import Any


def described(ready: Prepared, settings: Settings) -> dict[str, Any]:
    """The steps of its sandbox, or the profile and command lines of a backend that is not proven."""
    backend = ready.plan.backend
    if backend.name == "seatbelt":
        from amem.sandbox import seatbelt

        assert ready.door is not None and ready.door.port is not None
        path = f"{ready.home}/.amem/seatbelt.sb"
        return {
            "profile": seatbelt.profile(ready.spec, ready.door.port).splitlines(),
            "commands": [list(seatbelt.command(ready.spec, path))],
        }
    if backend.name == "wslc":
        from amem.launch.images import NAME
        from amem.sandbox import wslc

        lines = (*wslc.before(ready.id), wslc.harness(ready.id, NAME, ready.spec), *wslc.after(ready.id))
        return {"commands": [list(line) for line in lines]}
    return {"steps": [step.verb for step in _steps(ready, settings)]}


def _steps(ready: Prepared, settings: Settings) -> tuple[Step, ...]:
    """The plan that the stage will make on this machine, or the one of a session without a sandbox."""
    # The private home is not made yet; any folder of the same owner gives the same steps.
    sandbox = ready.spec._replace(home=str(settings.root.homes))
    if not ready.plan.backend.confined:
        return bare(sandbox)
    from amem.sandbox import host

    return plan(sandbox, host.facts(sandbox))
