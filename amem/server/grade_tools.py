"""The one tool of a grading session. A grader sees the rubric and the output that its prompt names, and nothing of the memory."""

from collections.abc import Mapping

from amem.memory.session import Memory, Session, Verdict
from amem.server.replies import Reply
from amem.server.table import Arguments, Tool, objects, text

INSTRUCTIONS = "You judge the work of another. End with `grade`: your verdict, and what you found."
VERDICTS = ("satisfied", "needs_revision")


def _grade(memory: Memory, session: Session, given: Arguments) -> Reply:
    session.verdict = Verdict(given["verdict"], given["explanation"])
    return Reply(data={"verdict": given["verdict"]})


TOOLS: Mapping[str, Tool] = {
    "grade": Tool(
        "Say whether the output does what the rubric asks for. The last call counts.",
        objects(
            ("verdict", "explanation"),
            verdict=text("needs_revision when anything that the rubric asks for is missing or wrong", enum=list(VERDICTS)),
            explanation=text("what you looked at and found; what must change, so that the writer can do it", minLength=1, maxLength=5_000),
        ),
        _grade,
        reads=False,
    ),
}
