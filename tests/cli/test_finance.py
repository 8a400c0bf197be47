"""Commands for people who work with the rows."""

import csv
import json
import re

from tests.cli.conftest import Cli
from tests.homes import rows


def test_a_record_is_traced(synced: Cli) -> None:
    ((key,),) = rows(synced.home, "SELECT _key FROM current.partners ORDER BY ALL LIMIT 1")
    found = synced.json("trace", "acme", "partners", key)
    (version,) = found["versions"]
    assert " ".join(sorted(version)) == (
        "digest end_reason file limit message offset page proven raw received_at remedy request_id "
        "row scan_id sent_at status valid_from valid_to"
    )
    assert (found["version"], found["key"], found["quarantine"]) == (1, key, [])
    assert json.loads(version["raw"])["partnerId"] == key
    text = synced("trace", "acme", "partners", key).stdout
    assert f"Record {key} of acme/partners in version 1:" in text
    assert "Proven: the record in the scan file has the digest of the row." in text
    assert f"{version['raw']}\n" in text
    (synced.home.archive / version["file"]).unlink()
    missing = synced("trace", "acme", "partners", key, code=3).stdout
    assert "is missing. The row is as it was loaded" in missing
    assert "Restore the scan file from a backup." in missing


def test_tables_are_exported(synced: Cli) -> None:
    (row,) = synced.json("export", "csv", "--table", "current.partners")
    file = synced.home.root / "exports" / "v00000001-csv" / "partners.csv"
    assert row == {
        "table": "current.partners",
        "rows": 25,
        "exported_to": str(file),
        "numbers_as_text": [],
    }
    assert len(list(csv.reader(file.read_text(encoding="utf-8").splitlines()))) == 26
    text = synced("export", "xlsx", "-t", "current.usage").stdout
    assert re.search(r"current.usage +1,500 +.*sequence.*usage\.xlsx", text)
    assert "Excel keeps 15 digits of a number." in text
    assert "SUM" not in synced("export", "xlsx", "-t", "current.partners").stdout


def test_nothing_is_traced_or_exported_before_a_sync(fresh: Cli) -> None:
    for command in ("trace acme usage key", "export csv"):
        assert "Nothing is published yet" in fresh(*command.split(), code=1).stderr
