"""A person's word about columns and rows set aside, given on the command line."""

import re
from pathlib import Path

import duckdb

from tests.cli.program import ran
from tests.sandbox.running import SECRET, Running, started

SIZES = ("--rate=0", "--partners=80", "--usage=1", "--billing=1")


def of(running: Running, home: Path) -> dict[str, str]:
    """Return what a sync of a sandbox into a home is told."""
    return {
        "PARTNER_SYNC_HOME": str(home),
        "PARTNER_SYNC_BASE_URL": running.url,
        "PARTNER_SYNC_AUTH_URL": running.url,
        "PARTNER_SYNC_AUDIENCE": "partner-sync-sandbox",
        "PARTNER_SYNC_CLIENT_ID": "demo",
        "PARTNER_SYNC_CLIENT_SECRET": SECRET,
    }


def stops_from_the_second_page_on(
    running: Running, environment: dict[str, str], sync: tuple[str, ...]
) -> None:
    running.fault("column-disappears", "/v2/partners", value=1)
    stopped = ran(environment, *sync)
    assert stopped.returncode == 0, stopped.stderr
    said = " ".join(stopped.stderr.split())
    words = r"partners\.appeared_later is in none of 4\d records from offset (39|40) on"
    assert re.search(words, said), said


def test_frozen_columns_and_rows_set_aside_wait_for_a_word(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    settings = '[streams.partners]\npolicy = "freeze"\nlimit = 40\n'
    (home / "config" / "settings.toml").write_text(settings)
    with started(*SIZES) as running:
        environment = of(running, home)
        sync = ("sync", "--stream", "partners")
        assert ran(environment, *sync).returncode == 0
        running.fault("column-appears", "/v2/partners")
        held = ran(environment, *sync)
        said = " ".join(held.stderr.split())
        assert held.returncode == 1, held.stderr  # the only stream chosen
        assert "its columns are frozen" in said
        assert "partner-sync schema accept partners --connection default" in said

        listed = ran(environment, "schema", "--stream", "partners")
        assert "is held back" in listed.stdout
        assert "$.partnerId" in listed.stdout
        refused = ran(environment, "quarantine", "accept", "partners")
        assert (refused.returncode, "nothing of partners awaits" in refused.stderr) == (2, True)
        accepted = ran(environment, "schema", "accept", "partners", "--note", "as announced")
        assert accepted.returncode == 0, accepted.stderr

        with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
            [(there,)] = reader.sql("SELECT count(appeared_later) FROM current.partners").fetchall()
            [(word,)] = reader.sql(
                "SELECT what FROM meta.schema_changes WHERE column_name = 'appeared_later'"
            ).fetchall()
        assert (there, word) == (80, "new")

        stops_from_the_second_page_on(running, environment, sync)
    assert "no rows are set aside" in ran(environment, "quarantine").stdout
