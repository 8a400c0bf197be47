"""Amounts are shown with the digits of their currency, and never with fewer than they have."""

from decimal import Decimal

import pytest

from pipelines.settings import currencies

SHOWN = [
    ("12.4", "EUR", "12.40"),
    ("12.400", "EUR", "12.40"),
    ("12.4001", "EUR", "12.4001"),
    ("700.000", "JPY", "700"),
    ("1.5", "KWD", "1.500"),
    ("0", "USD", "0.00"),
    (
        "12345678901234567890123456789012345678.9",
        "EUR",
        "12345678901234567890123456789012345678.90",
    ),
]


@pytest.mark.parametrize(("amount", "currency", "wanted"), SHOWN)
def test_an_amount_has_the_digits_of_its_currency(amount: str, currency: str, wanted: str) -> None:
    assert str(currencies.shown(Decimal(amount), currency)) == wanted
