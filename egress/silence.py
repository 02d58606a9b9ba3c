"""Answers that fall silent one after another: after the second the harness is told no, because it would ask again each time.

Pure but for what it remembers; the caller brings the clock. Measured in November 2026: most harnesses try a silent answer again, up to
eleven times, and each try lasts as long as an answer may be silent.
"""

Model = tuple[str, str]
"""A destination and a model's name there."""
SILENCES = 2
"""One after another, until a model is left alone."""
REST_S = 60.0
"""For so long: a harness comes again within seconds and is told no, which ends it; a person who asks later begins anew."""
IMPATIENCE = 3
"""A harness that leaves after this part of the time an answer may be silent has given it up: Node's own client does after half of it."""


class Silences:
    """The silences of a session's models, each at its destination: the title of a session, written by a small model, says nothing of the
    one that does the work. Times are seconds of one clock that only rises."""

    def __init__(self, idle_s: float) -> None:
        """`idle_s` is how long an answer may be silent."""
        self._long_s = idle_s / IMPATIENCE
        self._fell: dict[Model, tuple[int, float]] = {}
        """How often running, and when last."""

    def ended(self, model: Model, now_s: float, *, whole: bool, silent_s: float) -> None:
        """A call is over: its answer came whole, or nothing came of it for so long at its end."""
        if whole:
            self._fell.pop(model, None)
        elif silent_s >= self._long_s:
            self._fell[model] = (self._fell.get(model, (0, 0.0))[0] + 1, now_s)

    def resting(self, model: Model, now_s: float) -> bool:
        """Whether it is left alone; after that it is tried as if nothing had been."""
        times, last_s = self._fell.get(model, (0, 0.0))
        if times >= SILENCES and now_s - last_s >= REST_S:
            del self._fell[model]
            return False
        return times >= SILENCES
