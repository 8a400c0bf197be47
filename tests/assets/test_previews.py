"""Previews: a table in Markdown, every number as it is."""

from assets.previews import preview


def test_a_preview_shows_every_digit_and_keeps_to_its_cells() -> None:
    rows = [
        {"column": "amount", "sum": "12345678901234567.89", "rows": 1234567, "hours": 0.25},
        {"column": "a|b\nc", "sum": "", "rows": 0, "hours": None},
    ]
    assert preview(rows).value == (
        "| column | sum | rows | hours |\n"
        "| --- | --- | --: | --: |\n"
        "| amount | 12345678901234567.89 | 1234567 | 0.25 |\n"
        "| a\\|b c |  | 0 |  |"
    )
    assert preview([]).value == ""
