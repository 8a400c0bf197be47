"""What is materialized, for which partitions, with which proof, and what fails."""

import os
import signal
import threading
import time
from datetime import timedelta

import pytest
from sqlalchemy import select

from assets.raw import BACKFILL_TAG, SCHEDULED_AT_TAG
from assets.resources import RETRY_TAG, STOPPED
from pipelines.app.days import lists_of_day
from pipelines.app.results import LoggedProgress, ReadRequest
from pipelines.app.session import open_session
from pipelines.config.home import Home
from pipelines.core.clock import Clock
from pipelines.metadata.tables import Run, Scan
from tests.assets.homes import ONE, Site, days_ago, failure_text, key
from tests.homes import make_home

USAGE, BILLING = ONE.raw("usage"), ONE.raw("billing")


@pytest.mark.long
def test_past_days_need_no_request_and_days_without_a_scan_fail_alone(site: Site) -> None:
    """Dagster tags the run of a job's backfill with the dimensions of its first day too."""
    first = {"dagster/partition/connection": "acme", "dagster/partition/day": str(days_ago(3))}
    site.archive_day("acme", 3)
    site.archive_day("acme", 1, "usage")
    before = site.requests()
    text = failure_text(site.run_raw(key("acme", 3), key("acme", 1), **first))
    assert site.requests() == before
    assert site.materialized("usage") == {key("acme", 3), key("acme", 1)}
    assert site.materialized("billing") == site.materialized("partners") == {key("acme", 3)}
    newer, older = (site.shown(USAGE)[key("acme", day)] for day in (1, 3))
    assert newer["scan_id"] != older["scan_id"]
    assert str(older["proof"]).startswith("usage: COMPLETE. 60 rows, ")
    assert older["rows"] == older["dagster/partition_row_count"] == 60
    assert (older["method"], older["source"]) == ("one_page", "archive")
    assert f"acme/usage {days_ago(2)}: The archive has no scan" in text
    assert f"acme/billing {days_ago(1)}" in text
    assert f"acme/usage {days_ago(1)}" not in text
    site.archive_day("acme", 1)
    site.archive_day("acme", 2)
    assert site.run_raw(key("acme", 3), key("acme", 1), **first).success
    assert site.materialized("billing") == {key("acme", day) for day in (1, 2, 3)}
    site.archive_day("beta", 2)
    assert site.run_raw(key("acme", 2), key("beta", 2)).success
    assert key("beta", 2) in site.materialized("usage")
    assert site.shown(USAGE)[key("beta", 2)] != site.shown(USAGE)[key("acme", 2)]


def test_what_is_not_configured_fails_alone_by_name_without_a_request(site: Site) -> None:
    make_home(site.home.root, site.sandbox, "gamma", skip=["billing"])
    site.instance.add_dynamic_partitions(ONE.connections, ["amce", "gamma"])
    text = failure_text(site.run_raw(key("gamma"), "", "billing"))
    assert "no stream `billing` in gamma. It is in `skip`, or of another surface. Nothing" in text
    text = failure_text(site.run_raw(key("amce")))
    assert "There is no connection `amce`. Connections: acme, beta, gamma." in text
    assert not (site.home.archive / "amce").exists()
    assert site.requests() == 0
    assert site.materialized("billing") == set()
    assert site.run_raw(key("gamma"), "", "billing", "usage").success
    assert site.materialized("billing") == set()  # what is skipped is neither read nor marked
    assert site.shown(USAGE)[key("gamma")]["source"] == "service"


def test_a_group_fails_for_one_connection_after_the_others_were_read(site: Site) -> None:
    make_home(site.home.root, site.sandbox, "wrong", client_id="nobody")
    site.instance.add_dynamic_partitions(ONE.connections, ["wrong"])
    text = failure_text(site.run_raw(key("acme"), key("wrong")))
    assert site.materialized("usage") == site.materialized("billing") == {key("acme"), key("beta")}
    assert f"wrong/usage {days_ago(0)}" in text
    assert "acme/" not in text
    assert "beta/" not in text


def test_a_scheduled_run_reads_again_what_was_read_before_its_tick(site: Site) -> None:
    def run(**tags: str) -> object:
        assert site.run_raw(key("acme"), **tags).success
        return site.shown(USAGE)[key("acme")]["scan_id"]

    first = run(**{BACKFILL_TAG: "abc"})
    with site.database() as db:
        began = min(scan.started_at for scan in db.scalars(select(Scan)))
    before = site.requests()
    assert run(**{SCHEDULED_AT_TAG: (began - timedelta(seconds=1)).isoformat()}) == first
    assert site.requests() - before <= 1  # the identity at most
    assert run(**{SCHEDULED_AT_TAG: (began + timedelta(hours=1)).isoformat()}) != first
    with site.database() as db:
        runs = db.scalars(select(Run).order_by(Run.started_at))
        assert [each.trigger for each in runs] == ["backfill", "schedule", "schedule"]


class MidnightClock(Clock):
    """A clock that shows the last second of yesterday once, and today from then on."""

    is_today = False

    def time(self) -> float:
        now, is_today, self.is_today = time.time(), self.is_today, True
        return now if is_today else now - now % 86_400 - 1


def test_a_scan_that_began_after_midnight_counts_for_the_day_on_which_it_began(home: Home) -> None:
    with open_session(home, clock=MidnightClock()) as session:
        request = ReadRequest("acme", ("partners",))
        (read,) = lists_of_day(session, days_ago(1), [request], LoggedProgress())
    assert read.scan
    assert (read.scan.header.day, read.why_missing(days_ago(0))) == (days_ago(0), "")
    why = read.why_missing(days_ago(1))
    assert f"a scan that began on {days_ago(0)}, so it counts for that day" in why


def test_a_stopped_run_is_interrupted_for_the_application_and_can_be_resumed(site: Site) -> None:
    number = site.sandbox.fault("late", "/v2/usage", value=30.0)

    def stop() -> None:
        """Interrupt this process, as Dagster does, once a request waits for its answer."""
        end = time.monotonic() + 60
        while not site.sandbox.befallen(number) and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    result = site.run_raw(key("acme"))
    thread.join()
    assert failure_text(result) == f"KeyboardInterrupt: {STOPPED}\n"
    with site.database() as db:
        assert [run.outcome for run in db.scalars(select(Run))] == ["interrupted"]
        assert "usage" in [scan.stream for scan in db.scalars(select(Scan)) if not scan.sha256]


def test_a_run_is_launched_again_only_if_its_failure_may_pass(site: Site) -> None:
    folder = site.home.archive / "acme"
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file is where a folder should be")
    assert is_launched_again(site) == "true"
    folder.unlink()
    # Known before it begins: Dagster's own storage may be away when a step fails.
    run = site.instance.get_run_by_id(site.run_raw(key("acme")).run_id)
    assert run
    assert run.tags[RETRY_TAG] == "true"
    site.home.root.joinpath("config", "acme-secret").unlink()
    assert is_launched_again(site) == "false"


def is_launched_again(site: Site) -> str:
    """Run a list that fails; return what its run tells the daemon."""
    result = site.run_raw(key("acme"), "", "usage")
    assert "acme/usage" in failure_text(result)
    run = site.instance.get_run_by_id(result.run_id)
    assert run
    return run.tags[RETRY_TAG]
