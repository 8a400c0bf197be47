"""Builds on versions of an older and of a newer format."""

import duckdb
import pytest

from pipelines.app.checkup import status
from pipelines.core.errors import NewerFormat
from pipelines.versions import version_scans
from pipelines.versions.build import build, rebuild
from pipelines.versions.rollback import roll_back
from pipelines.versions.version_scans import readable_versions
from pipelines.warehouse import formats
from tests.versions.homes import Reading, Stores, read, usage


def widen(db: duckdb.DuckDBPyConnection) -> None:
    db.execute(
        "ALTER TABLE meta.loads ADD COLUMN later_figure BIGINT; CREATE TABLE meta.later (n INT)"
    )


def fail(db: duckdb.DuckDBPyConnection) -> None:
    db.execute("SELECT no_such_column FROM meta.loads")


def test_a_base_of_an_older_format_is_upgraded_without_a_new_scan(
    published: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "STEPS", (*formats.STEPS, widen))
    assert status(published)["version"] == 1
    assert build(published).is_new
    assert published.rows("SELECT later_figure FROM meta.loads") == [(None,)]
    assert published.rows("SELECT number FROM meta.format") == [(formats.newest(),)]
    assert published.rows("SELECT connection, version FROM meta.connections") == [("acme", 2)]
    assert len(published.keys()) == 10
    assert not build(published).is_new
    read(published, Reading(usage(*range(1, 12))))
    assert build(published).is_new
    assert len(published.keys()) == 11


def test_a_base_that_cannot_be_upgraded_is_rebuilt_from_the_archive(
    published: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = published.rows("SELECT _key, _valid_from, amount FROM history.usage ORDER BY ALL")
    monkeypatch.setattr(formats, "STEPS", (*formats.STEPS, fail))
    assert build(published).is_new
    assert "cannot be upgraded to format" in caplog.text
    assert published.rows("SELECT number FROM meta.format") == [(formats.newest(),)]
    after = published.rows("SELECT _key, _valid_from, amount FROM history.usage ORDER BY ALL")
    assert after == before


def test_versions_of_a_newer_format_are_refused_and_kept(
    published: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(formats, "STEPS", (*formats.STEPS, widen))
        read(published, Reading(usage(*range(1, 12))))
        build(published)
    version_scans._read_file.cache_clear()  # another process
    *_older, version = published.warehouse.versions()
    before = version.path.read_bytes()
    for make in (build, rebuild):
        with pytest.raises(NewerFormat, match="Version 2 has format"):
            make(published)
    assert "a newer one wrote" in str(status(published)["unknown"])
    roll_back(published, 1, "back to the older program")
    assert build(published).is_new
    assert len(published.keys()) == 11
    assert version.path.read_bytes() == before
    assert version not in readable_versions(published)
