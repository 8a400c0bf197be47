"""Commands for people who work with the rows."""

import json

from tests.cli.conftest import Cli
from tests.homes import rows


def test_a_record_is_traced(synced: Cli) -> None:
    ((key,),) = rows(synced.home, "SELECT _key FROM current.partners ORDER BY ALL LIMIT 1")
    found = synced.json("trace", "acme", "partners", key)
    (version,) = found["versions"]
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


def test_nothing_is_traced_before_a_sync(fresh: Cli) -> None:
    assert "Nothing is published yet" in fresh("trace", "acme", "usage", "key", code=1).stderr
