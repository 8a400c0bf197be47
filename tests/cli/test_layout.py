"""Tables on the screen: which columns give way, and that no character is lost."""

import pandas as pd
import pytest
from rich.console import Console

from pipelines.cli import layout

ROWS = [
    {"begun (UTC)": "2026-11-21 11:18:28", "rows": 1234567, "answer": "no token: check the client"},
    {"begun (UTC)": "2026-11-21 11:22:31", "rows": 20, "answer": "[bold]"},
]
WHOLE = "2026-11-21 11:18:28   1234567   no token: check the client"


def lines(room: int) -> list[str]:
    console = Console(width=room, force_terminal=False)
    with console.capture() as printed:
        console.print(layout.drawn(pd.DataFrame(ROWS), "", room))
    return [line.strip() for line in printed.get().splitlines()]


@pytest.mark.parametrize("room", [80, layout.ENDLESS])
def test_where_there_is_room_a_row_is_a_line(room: int) -> None:
    assert WHOLE in lines(room)
    assert lines(room)[-2].endswith("[bold]")


@pytest.mark.parametrize(("room", "begins"), [(45, "11:18:28"), (52, "2026-11-21 11:18:28")])
def test_long_columns_give_way_and_numbers_never(room: int, begins: str) -> None:
    told = lines(room)
    assert max(map(len, told)) <= room
    assert [line for line in told if "1234567" in line]
    assert [line for line in told if line.startswith(begins)]
    assert "client" in " ".join(told)


def test_a_pipe_has_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert layout.console().width == layout.ENDLESS
