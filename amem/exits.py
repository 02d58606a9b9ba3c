"""Every exit code that has a meaning of its own. A harness's own code is passed on, 128 + n when a signal ended it."""

DONE = 0
ERROR = 1
USAGE = 2
ANSWER_IS_NO = 3
"""It ran, and the answer is no: not there, not readable, held, refused, nothing claimable."""
NO_HANDOFF = 4
"""A prompted session left none, or the task is back in the pool."""
TIMED_OUT = 124
NO_SANDBOX = 125
NOT_EXECUTABLE = 126
NO_PROGRAM = 127
INTERRUPTED = 130
