"""Host ids the sandbox uses. Pure, and alone, because both the plan and the stage need it and neither may load the other's imports."""

OUTSIDE_ID = 2_000_000_000
"""The host id of everything in a sandbox started by root: past the ranges of shadow (to 600100000) and systemd (to 1879048191)."""
