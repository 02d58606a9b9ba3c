"""A row of bars for a terminal, where people would rather look than read."""

import re
from collections.abc import Mapping
from datetime import date, timedelta

BARS = "▁▂▃▄▅▆▇█"
DAYS = 28
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def line(values: list[float]) -> str:
    """One bar a value, the largest at full height; what is nothing has no bar, and what is little has one."""
    most = max(values, default=0)
    if most <= 0:
        return " " * len(values)
    return "".join(BARS[max(0, min(7, round(value / most * 8) - 1))] if value > 0 else " " for value in values)


def days(by_day: Mapping[str, float], unit: str) -> str:
    """The last days up to the latest that has something, days without anything included; empty when there is only one."""
    known = sorted(day for day, value in by_day.items() if value > 0 and _DATE.fullmatch(day))  # a damaged row has none
    if len(known) < 2:
        return ""
    last = date.fromisoformat(known[-1])
    first = max(date.fromisoformat(known[0]), last - timedelta(days=DAYS - 1))
    span = [(first + timedelta(days=count)).isoformat() for count in range((last - first).days + 1)]
    values = [by_day.get(day, 0.0) for day in span]
    return f"{span[0]} {line(values)} {span[-1]}   most in a day: {max(values):,.6g} {unit}"
