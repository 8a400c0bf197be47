"""A catalog on a machine that has not seen what a bucket has."""

import shutil
from contextlib import closing
from pathlib import Path

import duckdb

from pipelines.app.catalog import write_catalog
from pipelines.files.bucket import Bucket
from tests.homes import make_home, sync_once
from tests.sandbox.running import Running

pytest_plugins = ["tests.bucket", "tests.postgresql"]
COUNT = "SELECT count(*) FROM current.usage"


def test_a_catalog_brings_what_other_machines_have_published(
    tmp_path: Path, sandbox: Running, bucket: Bucket, server_url: str
) -> None:
    home = make_home(tmp_path / "first" / "acme", sandbox)
    home.settings_file.write_text(
        f'metadata_url = "{server_url}"\nfiles = "{bucket.url}"\n'
        f'files_endpoint = "{bucket.endpoint}"\n'
    )
    sync_once(home)
    other = tmp_path / "second"
    shutil.copytree(home.settings_file.parent, other / "acme" / "config")
    rows = write_catalog(tmp_path / "all.duckdb", other)
    assert [row["message"] for row in rows] == [""]
    with closing(duckdb.connect(tmp_path / "all.duckdb", read_only=True)) as db:
        assert db.execute(COUNT).fetchall() == [(1500,)]
