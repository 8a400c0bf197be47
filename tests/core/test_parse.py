"""Texts that spell a number, a day or a moment, and those that only look like one."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from pipelines.core.parse import parse_day, parse_number, parse_time

HALF_PAST_ONE = datetime(2026, 10, 1, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", Decimal(0)),
        ("-12.50", Decimal("-12.50")),
        ("11e-4", Decimal("0.0011")),
        ("1E+2", Decimal(100)),
        ("9" * 60, Decimal("9" * 60)),
        *[
            (text, None)
            for text in (
                *("", " 5", "5 ", "007", "-01", "+1", "1.", ".5", "0x1A", "1_000", "1,5", "inf"),
                *("Infinity", "nan", "1e", "1e99999", "٣", "1\n", "--1", "1e+-2"),
            )
        ],
    ],
)
def test_a_number_is_what_json_spells(text: str, number: Decimal | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("2026-10-01T01:30:00Z", "Z"),
        ("2026-10-01t01:30:00.000z", "Z"),
        ("2026-10-01 01:30:00 UTC", "Z"),
        ("2026-10-01 01:30Z", "Z"),
        ("2026-10-01 01:30:00+00:00", "+00:00"),
        ("2026-10-01 01:30:00 +0000", "+00:00"),
        ("2026-09-30T22:30:00-03", "-03:00"),
        ("2026-09-30T22:30:00.000000000-0300", "-03:00"),
        ("2026-10-01T07:00+05:30", "+05:30"),
    ],
)
def test_a_moment_may_be_spelled_in_many_ways(text: str, offset: str) -> None:
    moment = parse_time(text)
    assert moment is not None
    assert (moment.utc, moment.offset, moment.is_cut) == (HALF_PAST_ONE, offset, False)


def test_digits_of_a_second_beyond_six_are_cut() -> None:
    moment = parse_time("2026-10-01T01:30:00.123456789Z")
    assert moment is not None
    assert moment.utc == HALF_PAST_ONE.replace(microsecond=123456)
    assert moment.is_cut


@pytest.mark.parametrize(
    "text",
    [
        *("2026-10-01", "2026-10-01T01:30:00", "2026-02-29T00:00:00Z", "0000-01-05T00:00:00Z"),
        *("9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z", "2026-10-01T24:00:00Z"),
        *("2026-10-01T01:30:60Z", "2026-10-01T01:30:00.1234567890Z", "2026-10-01T01:30:00+5"),
        *("1790812800", "10/01/2026 01:30", "2026-10-01T01:30:00Z ", "2026-10-01T01:30:00+24:00"),
    ],
)
def test_other_texts_are_no_moment(text: str) -> None:
    assert parse_time(text) is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-02-29", date(2024, 2, 29)),
        ("9999-12-31", date(9999, 12, 31)),
        *[
            (text, None)
            for text in ("2026-02-29", "0000-01-01", "20260901", "2026-9-1", "infinity")
        ],
    ],
)
def test_a_day_is_year_month_and_day(text: str, day: date | None) -> None:
    assert parse_day(text) == day
