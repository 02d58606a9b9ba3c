"""Numbers that more than one process of a sandbox knows. Pure, and alone, because neither may load the other's imports."""

OUTSIDE_ID = 2_000_000_000
"""The host id of everything in a sandbox started by root: past the ranges of shadow (to 600100000) and systemd (to 1879048191)."""

RESUME_FOREGROUND = 0x80
"""Added to SIGCONT or START on the link: give the harness the terminal first."""
START = 0
"""On the link: the launcher has done what comes before the harness."""
