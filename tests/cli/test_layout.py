"""Tables on the screen: which columns give way, and that no character is lost."""

from decimal import Decimal

import pytest
from rich.console import Console

from pipelines.cli import layout
from pipelines.cli.layout import Rows

ROWS = [
    {"begun (UTC)": "2026-11-21 11:18:28", "rows": 1234567, "answer": "no token: check the client"},
    {"begun (UTC)": "2026-11-21 11:22:31", "rows": 20, "answer": "[bold]"},
]
WHOLE = "2026-11-21 11:18:28   1234567   no token: check the client"


def lines(room: int, rows: Rows = ROWS) -> list[str]:
    console = Console(width=room, force_terminal=False)
    with console.capture() as printed:
        console.print(layout.drawn(rows, "", room))
    return [line.strip() for line in printed.get().splitlines()]


@pytest.mark.parametrize("room", [80, layout.ENDLESS])
def test_where_there_is_room_a_row_is_a_line(room: int) -> None:
    assert WHOLE in lines(room)
    assert lines(room)[-2].endswith("[bold]")


@pytest.mark.parametrize(("room", "begins"), [(34, "11:18:28"), (45, "2026-11-21 11:18:28")])
def test_long_columns_give_way_and_numbers_never(room: int, begins: str) -> None:
    told = lines(room)
    assert max(map(len, told)) <= room
    assert [line for line in told if "1234567" in line]
    assert [line for line in told if line.startswith(begins)]
    assert "client" in " ".join(told)


RUN = {
    "begun (UTC)": "2026-11-21 11:18:28",
    "connection": "default",
    "day": "2026-11-21",
    "took": "1,432.3 s",
    "requests": 64,
    "429s": 0,
    "seconds waited": Decimal("11.8"),
    "outcome": "published",
    "run": "a1b2c3d4",
}


@pytest.mark.parametrize("room", [83, 96, 99, 107, 150])
def test_gaps_give_way_before_words_and_words_before_characters(room: int) -> None:
    told = lines(room, [RUN])
    assert max(map(len, told)) <= room
    parts = {word for each in RUN.values() for word in str(each).split()}
    assert parts <= {word for line in told for word in line.split()}
    date, time = "2026-11-21", "11:18:28"
    assert ([line for line in told if f"{date} {time}" in line] != []) == (room > 92)


def test_a_cell_is_empty_or_its_value_as_it_is() -> None:
    values = {"small": Decimal("0E-9"), "nothing": None, "word": "0.10", "yes": True}
    assert lines(80, [values])[-2].split() == ["0.000000000", "0.10", "True"]
    assert lines(80, []) == [""]


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert layout.console().width == layout.ENDLESS
