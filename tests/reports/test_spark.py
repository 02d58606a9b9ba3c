from amem.reports import spark


def test_the_largest_is_full_and_what_is_little_still_shows() -> None:
    assert spark.line([0, 1, 50, 100]) == " ▁▄█"
    assert spark.line([0, 0]) == "  "
    assert spark.line([]) == ""


def test_days_without_anything_are_gaps_and_only_the_last_four_weeks_show() -> None:
    assert spark.days({"2026-11-01": 5}, "tokens") == ""
    assert spark.days({"2026-11-01": 8, "2026-11-04": 4}, "tokens") == "2026-11-01 █  ▄ 2026-11-04   most in a day: 8 tokens"
    long = spark.days({"2026-01-01": 9e9, "2026-11-29": 1, "2026-11-30": 2}, "tokens")
    assert long.startswith("2026-11-03 ") and long.endswith("▄█ 2026-11-30   most in a day: 2 tokens")
