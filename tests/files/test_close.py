"""A month of a home on a bucket: prepared on one machine, approved and closed on another one."""

import grp
import os
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError
from pipelines.files.bucket import Bucket
from pipelines.finance.approvals import take_over
from pipelines.finance.approve import approve_copy
from pipelines.finance.books import make_books
from pipelines.finance.close import list_closes, prepare_close
from pipelines.metadata.engine import Metadata
from tests.files.test_versions import second
from tests.finance.test_database_approvals import SAID, prepared, roles, url_of
from tests.on_bucket import moved
from tests.reconcile.months import SEPTEMBER
from tests.versions.homes import Stores

pytest_plugins = ["tests.bucket", "tests.postgresql"]
__all__ = ["prepared", "roles"]  # fixtures
WHOLE = {"001", "002"}


@pytest.mark.usefixtures("roles")
def test_a_month_is_approved_and_closed_on_another_machine(
    prepared: Stores,
    bucket: Bucket,
    postgresql: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APPROVER_URL", url_of(postgresql, "approver"))
    group = grp.getgrgid(os.getgid()).gr_name
    one = moved(prepared.changed(readers=group), bucket)
    prepare_close(one, SEPTEMBER, SAID)
    other = second(one, bucket, tmp_path / "second")
    with closing(Metadata.open(other.home.metadata_file, url_of(postgresql, "home"))) as metadata:
        other = replace(other, metadata=metadata)
        # The approver has no right to the bucket: what is not on the machine cannot be read.
        with pytest.raises(ConfigurationError, match="cannot be read") as refused:
            approve_copy(SEPTEMBER, 2, home=other.home, database="APPROVER_URL")
        assert "close list" in refused.value.remedy
        assert [row["state"] for row in list_closes(other)] == ["withdrawn", "prepared"]
        folder = other.home.closes / "2026-09"
        assert {copy.name for copy in folder.iterdir()} == WHOLE
        for shared in (folder.parent, folder, *folder.iterdir()):
            assert oct(shared.stat().st_mode)[-3:] == "750"
        assert {oct(file.stat().st_mode)[-3:] for file in folder.glob("*/*")} == {"440"}
        # Who may read the bucket needs no home: the copy alone is enough.
        elsewhere = Home(tmp_path / "approver")
        shutil.copytree(folder, elsewhere.closes / "2026-09")
        approved = approve_copy(SEPTEMBER, 2, home=elsewhere, database="APPROVER_URL")
        assert approved["approver"] == "approver"
        assert take_over(other) == ["2026-09 (002), approved by approver, is closed."]
        make_books(other)
        one.warehouse.store.refresh()
        for stores in (one, other):
            rows = list_closes(stores)
            found = [(row["state"], row["reviewer"], row["problem"]) for row in rows]
            assert found == [("withdrawn", "", None), ("closed", "approver", None)]
