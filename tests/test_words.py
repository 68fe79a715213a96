"""Numbers in words."""

from atenbench.words import many, percent


def test_shares_in_words() -> None:
    words = [percent(part) for part in (0, 0.00004, 0.0123, 0.1, 0.994, 1)]
    assert words == ["0 %", "under 0.1 %", "1.2 %", "10 %", "99 %", "100 %"]


def test_one_and_more() -> None:
    assert [many(count, "problem") for count in (0, 1, 8533)] == [
        "0 problems",
        "1 problem",
        "8,533 problems",
    ]
