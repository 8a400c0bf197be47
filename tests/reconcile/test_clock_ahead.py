"""A night with a clock that was ahead: no month is due by it once a right one has read again."""

from datetime import date, timedelta
from typing import Any

import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.finance.close import close_month
from pipelines.metadata.scans import redate_scans
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.versions.homes import Stores

NOVEMBER = date(2026, 11, 1)
BILLED = used("u", day="2026-11-02")
UNBILLED = used("w", day="2026-11-03")
BILL = bill("b", line("u"), month="2026-11-01")
AHEAD = timedelta(days=60)
BASIS = """
SELECT basis.as_of, (SELECT count(*) FROM reconciliation.breaks WHERE state <> 'resolved')
FROM reconciliation.basis AS basis
"""


def basis(stores: Stores) -> Any:
    """Return when the books end, and how many breaks are open."""
    ((as_of, breaks),) = stores.rows(BASIS)
    return as_of, breaks


@pytest.mark.long
def test_a_month_is_due_by_the_newest_scan_and_no_other(stores: Stores) -> None:
    stores.configure()
    publish(stores, partners=partners([FIRST]), usage=[BILLED, UNBILLED], billing=[BILL])
    right, breaks = basis(stores)
    assert breaks == 0  # what is not billed yet is no break within the month
    stores.clock.now += AHEAD
    publish(stores, usage=[BILLED, UNBILLED])
    assert basis(stores) == (right + AHEAD + timedelta(days=1), 1)
    stores.clock.now -= AHEAD
    with stores.metadata.transaction() as db:  # as each sync does
        redate_scans(db, stores.clock.now, "acme")
    publish(stores, usage=[BILLED, UNBILLED])
    assert basis(stores) == (right + timedelta(days=2), 0)
    with pytest.raises(ConfigurationError, match="it ends at 2026-12-"):
        close_month(stores, NOVEMBER, "ann", "bob")
