"""What a value says that no column holds, and which numbers a role can hold."""

from datetime import date
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pipelines.finance.reconcile.spelled import Kind, fit, read_sent, scale_of

UTC = ZoneInfo("UTC")
SENT: list[tuple[Kind, Any, Any]] = [
    (Kind.TEXT, "EUR", "EUR"),
    (Kind.TEXT, True, "true"),
    (Kind.TEXT, [{"code": "EUR"}], None),  # a list stands for what cannot be a value
    (Kind.TEXT, [["EUR"]], None),
    (Kind.NUMBER, "1e1", Decimal(10)),
    (Kind.NUMBER, True, None),
    (Kind.NUMBER, ["5"], None),
    (Kind.DAY, "2026-09", date(2026, 9, 1)),
    (Kind.DAY, False, None),
]
WIDEST = "9" * 38
FITTING = [
    (WIDEST, 0, WIDEST),
    (WIDEST, 1, None),
    (f"{'9' * 20}.{'9' * 18}", 18, f"{'9' * 20}.{'9' * 18}"),
    (f"{WIDEST}.4", 0, WIDEST),
    (f"{WIDEST}.6", 0, None),  # rounded, it has a digit more
    ("-0.005", 2, "0.00"),
]


@pytest.mark.parametrize(("kind", "sent", "value"), SENT)
def test_what_was_sent_is_read_as_what_it_says_or_not_at_all(
    kind: Kind, sent: Any, value: Any
) -> None:
    assert read_sent(kind, sent, UTC) == value


@pytest.mark.parametrize(("number", "scale", "held"), FITTING)
def test_a_number_is_held_if_its_digits_have_room(
    number: str, scale: int, held: str | None
) -> None:
    assert fit(Decimal(number), scale) == (None if held is None else Decimal(held))


def test_numbers_have_as_many_digits_behind_the_point_as_one_of_them_needs() -> None:
    numbers = [Decimal("1.5"), None, "0.00001", Decimal("0.125"), Decimal("1e3")]
    assert scale_of(numbers) == 3
    assert scale_of([]) == 0
    assert scale_of([Decimal("1e-30")]) == 18
