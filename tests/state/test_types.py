"""Times in the ledger: aware in, the same moment out, in UTC."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Connection, MetaData, Table, create_engine, insert, select
from sqlalchemy.exc import StatementError

from pipelines.state.types import UtcTime

MOMENTS = Table("moments", MetaData(), Column("at", UtcTime))
# Away from the first and last year, where UTC may lie outside of the calendar.
TIMES = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001 (zones are drawn beside it)
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=st.timezones()
    | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m))),
)


@pytest.fixture(scope="module")
def moments() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        MOMENTS.create(connection)
        yield connection
    engine.dispose()


def kept(moments: Connection, at: datetime | None) -> datetime | None:
    moments.execute(MOMENTS.delete())
    moments.execute(insert(MOMENTS).values(at=at))
    return moments.execute(select(MOMENTS.c.at)).scalar()


@given(at=TIMES)
def test_a_time_comes_back_as_the_same_moment_in_utc(moments: Connection, at: datetime) -> None:
    back = kept(moments, at)
    assert back is not None
    assert back == at.astimezone(UTC)
    assert back.tzinfo is UTC


def test_order_is_by_moment_whatever_the_zone(moments: Connection) -> None:
    tokyo, lima = timezone(timedelta(hours=9)), timezone(timedelta(hours=-5))
    early = datetime(2026, 1, 2, 8, 0, tzinfo=tokyo)
    late = datetime(2026, 1, 1, 19, 0, tzinfo=lima)
    moments.execute(MOMENTS.delete())
    moments.execute(insert(MOMENTS), [{"at": late}, {"at": early}])
    rows = moments.execute(select(MOMENTS.c.at).order_by(MOMENTS.c.at)).scalars().all()
    assert rows == [early, late]


def test_no_time_stays_none(moments: Connection) -> None:
    assert kept(moments, None) is None


def test_a_naive_time_is_refused(moments: Connection) -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 (the thing refused)
    with pytest.raises(StatementError, match="aware times only"):
        kept(moments, naive)
