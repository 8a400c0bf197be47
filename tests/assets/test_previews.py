"""Previews: a table in Markdown, every number as it is."""

import pytest

from assets.previews import preview, told


def test_a_preview_shows_every_digit_and_keeps_to_its_cells() -> None:
    rows = [
        {"column": "amount", "sum": "12345678901234567.89", "rows": 1234567, "hours": 0.25},
        {"column": "a|b\n*", "sum": "", "rows": 0, "hours": None},
    ]
    assert preview(rows).value == (
        "| column | sum | rows | hours |\n"
        "| --- | --: | --: | --: |\n"
        "| amount | 12345678901234567.89 | 1234567 | 0.25 |\n"
        "| a\\|b \\* |  | 0 |  |"
    )
    assert preview([]).value == ""


@pytest.mark.parametrize(("count", "shown"), [(0, "none"), (2, "x · x"), (6, ["x"] * 6)])
def test_few_lines_are_a_text_that_is_read_at_once(count: int, shown: object) -> None:
    assert told(["x"] * count) == shown
