import resource
from contextlib import closing
from random import Random

import pytest

from pipelines.core.errors import BuildFailed, StorageFailed
from pipelines.publish.build import build
from pipelines.publish.verify import control_totals, require_totals
from tests.publish.homes import Reading, Stores, read, usage

ALL = usage(*range(1, 11))


def test_a_full_disk_is_not_the_fault_of_a_scan(published: Stores) -> None:
    base = published.warehouse.published()
    noise = Random(1)  # which nothing compresses
    records = [{"id": f"w{number}", "text": noise.randbytes(30_000).hex()} for number in range(80)]
    scan = read(published, Reading([*ALL, *records]))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert base is not None
    limit = base.path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, unlimited[1]))  # as a full disk
    try:
        with pytest.raises(StorageFailed, match="Version 2 cannot be written") as refused:
            build(published)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert "Make room" in refused.value.remedy
    assert published.warehouse.published() == base
    assert published.statuses()[scan] == "sealed"
    assert build(published).is_new  # after room was made
    assert len(published.keys()) == 90


def test_a_version_that_is_not_what_was_written_is_not_published(published: Stores) -> None:
    with closing(published.warehouse.open()) as db:
        totals = control_totals(db)
        require_totals(totals)(db)
        other = {**totals, "history.usage": totals["history.usage"]._replace(rows=9)}
        with pytest.raises(BuildFailed, match=r"other rows in history\.usage"):
            require_totals(other)(db)
