"""The job `publish`: what is built, what the checks say, and what is never green."""

import csv
import re

import pytest

from pipelines.core.files import write_durably
from pipelines.finance.reconcile.statements import TABLES
from tests.assets.homes import ONE, STREAMS, Result, Site, failure_text, key
from tests.checks.channel import Channel
from tests.checks.test_catalogue import NOTHING_BEGUN
from tests.homes import rows
from tests.reconcile.books import SANDBOX_MAPPING

USAGE_ROWS = "SELECT count(*) FROM current.usage"


def checks(result: Result) -> dict[str, bool]:
    assert result.success
    return {
        f"{each.asset_key.to_user_string()} {each.check_name}": each.passed
        for each in result.get_asset_check_evaluations()
    }


@pytest.mark.long
def test_without_a_read_nothing_is_materialized_and_unknown_checks_fail(site: Site) -> None:
    assert "no list has been read yet" in failure_text(site.run_job("publish"), "publish_step")
    assert site.shown(ONE.published) == {}
    assert not site.home.link.exists()
    passed = [name.split()[1] for name, passes in checks(site.run_job("checks")).items() if passes]
    assert sorted(passed) == sorted(NOTHING_BEGUN)


def test_a_version_of_all_connections_is_published_and_checked(site: Site) -> None:
    site.run_raw(key("acme"), key("beta"))
    write_durably(site.home.mapping_file, SANDBOX_MAPPING.encode())
    failed = [name for name, passes in checks(site.run_job("publish")).items() if not passes]
    assert [name.split()[1] for name in failed] == ["account_loaded_twice"]  # both are one client
    assert rows(site.home, USAGE_ROWS) == [(120,)]
    (version,) = site.shown(ONE.published).values()
    assert (version["version"], version["scans loaded"], version["rows new"]) == (1, 6, 170)
    assert all(site.shown(ONE.reconciliation(table)) for table in TABLES)
    assert all(site.shown(ONE.table(stream)) for stream in STREAMS)
    wrong = SANDBOX_MAPPING.replace('quantity = "lines[].quantity"', 'quantity = "lines[].amount"')
    write_durably(site.home.mapping_file, wrong.encode())
    result = site.run_job("publish")
    assert checks(result)["reconciliation/breaks not_billed"]
    assert not checks(result)["reconciliation/breaks different"]
    assert re.fullmatch(
        r"(\d+ open breaks: [\d.,-]+ [A-Z]{3}\.\n)+partner-sync breaks --rule different",
        str(reasons_of(result)["different"]),
    )


@pytest.mark.long
def test_a_report_that_cannot_be_written_holds_nothing_else_back(site: Site) -> None:
    site.archive_day("acme", 0, "usage")
    (site.home.reports / "v00000001.html").mkdir(parents=True)
    result = site.run_job("publish")
    text = failure_text(result, "publish_step")
    assert re.search(r"v00000001\.html cannot be written: .* run `partner-sync report`", text)
    assert all(site.shown(each) for each in (ONE.published, ONE.table("usage")))
    assert not site.shown(ONE.report)
    assert reasons_of(result).keys() == reasons_of(site.run_job("checks")).keys()


def reasons_of(result: Result) -> dict[str, str | None]:
    """Return what each check says."""
    return {each.check_name: each.description for each in result.get_asset_check_evaluations()}


@pytest.mark.long
def test_what_was_read_is_published_although_another_stream_failed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = Channel()
    monkeypatch.setenv("OPS_HOOK", channel.url)
    write_durably(
        site.home.settings_file, b'notify = ["OPS_HOOK"]\nnotify_summary = ["OPS_HOOK"]\n'
    )
    site.sandbox.fault("scope-revoked", "/v2/usage")
    text = failure_text(site.run_raw(key("acme")))
    assert "acme/usage" in text
    assert "acme/billing" not in text
    materialized = {stream: site.materialized(stream) for stream in ("usage", "billing")}
    assert materialized == {"usage": set(), "billing": {key("acme")}}
    published = site.run_job("publish")
    summary, findings = [title for title, _kind in channel.heads]
    assert (summary, "new" in findings) == ("partner-sync: usage and billing, version 1", True)
    passed = checks(published)
    assert not passed["warehouse/usage list_not_loaded"]
    reasons = reasons_of(published)
    assert "Not known. Nothing is mapped" in str(reasons["different"])
    assert "warehouse: Nothing is mapped" in str(reasons["not_reconciled"])  # a note: it passes
    assert passed["published/warehouse not_reconciled"]
    assert not site.shown(ONE.reconciliation("summary"))
    assert rows(site.home, "SELECT count(*) FROM current.billing") == [(20,)]
    site.archive_day("acme", 0, "billing")  # a later sync of another list
    said = reasons_of(site.run_job("checks"))["run_failed"]
    assert re.search(r"^acme: The sync .* failed\. usage: .* grant the scope", str(said))


@pytest.mark.long
def test_tables_are_exported_when_asked_for(site: Site) -> None:
    assert "Nothing is published yet" in failure_text(site.run_export("csv"), "exports__tables")
    site.archive_day("acme", 0, "usage")
    site.run_job("publish")
    assert "Unknown format `docx`" in failure_text(site.run_export("docx"), "exports__tables")
    assert site.shown(ONE.exports) == {}
    assert site.run_export("csv", "current.usage").success
    (shown,) = site.shown(ONE.exports).values()
    file = site.home.exports / "v00000001-csv" / "usage.csv"
    assert shown == {"current.usage": f"60 rows: {file}"}
    with file.open(newline="") as opened:
        assert len(list(csv.DictReader(opened))) == 60


@pytest.mark.long
def test_publishing_again_rebuilding_and_maintenance_need_no_request(site: Site) -> None:
    site.archive_day("acme", 0, "usage")
    site.run_job("publish")
    before = site.requests()
    for job, version in (("publish", 1), ("rebuild", 2), ("maintenance", 2)):
        result = site.run_job(job)
        assert result.success
        assert site.home.link.readlink().name == f"v0000000{version}.duckdb"
        assert site.shown(ONE.published)["None"]["version"] == version
    assert "6 files were verified." in str(site.instance.all_logs(result.run_id))
    assert site.requests() == before
    assert rows(site.home, USAGE_ROWS) == [(60,)]
    damaged = next(site.home.archive.glob("acme/usage/*"))
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:-40])
    text = failure_text(site.run_job("maintenance"), "verify_archive")
    assert re.search(rf"{damaged} is damaged: .* Restore the file from", text)
