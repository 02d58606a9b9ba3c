"""Exit codes that are not an error class's own."""

DONE = 0
ERROR = 1
USAGE = 2
ANSWER_IS_NO = 3
"""It ran, and the answer is no: not there, not readable, held, refused, nothing claimable."""
NO_HANDOFF = 4
TIMED_OUT = 124
INTERRUPTED = 130
