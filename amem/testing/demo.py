"""The script of `make demo`, as data: what the model of the demonstration says to the small agent in the sandbox.

It asks the memory for what the agent found, writes what it learnt with its source, leaves a handoff and ends. Every id comes
from an answer of the memory server: nothing here knows the record.
"""

from amem.typed import Any

PROMPT = "How does a model call leave the sandbox, and who may read what comes back? Write down what you learn."
"""What the agent of the demonstration is asked."""

MODEL = "demo-1"

SCRIPT: dict[str, Any] = {
    "models": [MODEL],
    "steps": [
        {"text": "I look in the memory first.", "tool": "memory.search", "args": {"query": "egress model call label ceiling", "limit": 5}},
        {"tool": "memory.get", "args": {"id": "$results[0].hits[0].id"}, "usage": {"output": 24}},
        {
            "text": "That answers it; I keep the finding for the next session.",
            "tool": "memory.write",
            "args": {
                "type": "fact",
                "title": "Model calls leave through the metering egress alone",
                "summary": "The sandbox has only a loopback port; the egress decides, logs and meters each call.",
                "body": (
                    "A harness has no network but one loopback port. The egress behind it checks the session's label against the "
                    "destination's ceiling, logs the decision, adds the key and meters the answer.\n\n"
                    "Read in: ${results[0].hits[0].title}."
                ),
                "sources": ["$results[0].hits[0].id"],
                "basis": "observed",
            },
            "usage": {"output": 160},
        },
        {
            "tool": "memory.handoff",
            "args": {
                "body": "The question is answered: see the entry written in this session. Nothing is left half done.",
                "done": ["searched the record", "read ${results[0].hits[0].title}", "wrote ${results[2].id}"],
                "next": ["ask the same of a real harness: amem launch --harness claude"],
                "cites": ["$results[2].id"],
            },
            "usage": {"output": 90},
        },
        {
            "text": (
                "A model call leaves only through the egress, which weighs the session's label against the destination's ceiling "
                "before anything is sent. I wrote this down as ${results[2].id} and left a handoff."
            ),
            "usage": {"output": 60},
        },
    ],
}
