"""The full rehearsal of several machines (`make rehearsal`): nights, faults, commands, clocks.

Three homes of four accounts, all at their limits, on two workers. The phases follow each other on
one cluster. With BUSY=1 in the environment, figures that need idle cores are printed, not judged.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pipelines.app.session import open_session
from pipelines.config.home import Home
from pipelines.metadata.tables import Scan
from tests.assets.deployment import TERMINATE, answers, free_port
from tests.assets.homes import key, stay_within_a_day
from tests.cluster.deployment import (
    ACCOUNTS,
    AWAY,
    HOMES,
    NUMBER,
    RATE,
    USAGE,
    WORKERS,
    Rehearsal,
    analyst,
    begin_alone,
    content,
    made_home,
    require_end,
    services,
    settings_at,
)
from tests.cluster.figures import Figures
from tests.cluster.servers import Redis, started_cluster
from tests.cluster.test_machines import until
from tests.homes import rows
from tests.postgresql import Server
from tests.s3_server import BucketServer
from tests.sandbox.running import Running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

MACHINES = (*WORKERS, "code-server", "webserver")  # the last for commands
TWICE = "SELECT count(*), count(DISTINCT (_connection, _key)), count(_valid_to) FROM history.usage"
SESSION_OF = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s
"""
SIGNED = ("--preparer=ann", "--reviewer=bob")
BECAUSE = ("--reason=why", "--yes", "--force")  # a bill in ten names the record
CLOCK = Path(__file__).with_name("clock.c")
SERVERS = {Server: "PostgreSQL", Redis: "Redis", BucketServer: "the object store"}
START = timedelta(seconds=15)  # of all processes
MINUTES = timedelta(minutes=10)  # a bucket refuses a clock that is 15 minutes wrong


@pytest.fixture
def figures(capsys: pytest.CaptureFixture[str]) -> Iterator[Figures]:
    figures = Figures()
    yield figures
    figures.note("the whole rehearsal", f"{figures.seconds():.0f} s", "8 minutes")
    with capsys.disabled():
        print(f"\n\n{figures.table()}\n")  # noqa: T201 - this is its result


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """The folder of the same homes on one machine."""
    return tmp_path / "alone"


@pytest.fixture
def prepared(tmp_path: Path, alone: Path) -> Iterator[tuple[Running, list[subprocess.Popen[str]]]]:
    """The service, and the commands that make of it, in the folder `alone`, what one machine does.

    The first home is made, as the mapping is that of its records.
    """
    with services(tmp_path) as (limited, unlimited):
        made = [made_home(tmp_path / "made", limited, home) for home in HOMES]
        own = [made_home(alone, unlimited, home) for home in HOMES]
        first, *others = own
        require_end(begin_alone(first, "sync"))
        require_end(begin_alone(first, "mapping", "accept"))
        for home in (*others, *made):
            shutil.copyfile(first.mapping_file, home.mapping_file)
        yield limited, [begin_alone(home, "sync") for home in others]


@pytest.fixture
def rehearsal(
    tmp_path: Path,
    figures: Figures,
    prepared: tuple[Running, list[subprocess.Popen[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rehearsal]:
    """The cluster, whose schedule ticks once, soon."""
    service, syncs = prepared
    stay_within_a_day(minutes=8)
    figures.note("the first home is made on one machine", "")
    with started_cluster(*HOMES) as cluster, ExitStack() as opened:
        for name, value in cluster.environment.items():
            monkeypatch.setenv(name, value)
        # It creates its tables, before two processes do at once.
        instance = opened.enter_context(dg.DagsterInstance.get())
        port = free_port()
        tick = next_minute(datetime.now(UTC) + START)
        for home in HOMES:
            config = tmp_path / "made" / home / "config"
            cluster.configure(config, MACHINES, settings_at(tick), home)
        for worker in WORKERS:
            cluster.start_worker(worker, 2)
        cluster.start_code_server()
        cluster.start_daemon()
        cluster.start_webserver(port)
        for process in syncs:
            require_end(process)
        figures.note("the other two are made; all processes are started", f"tick at {tick:%H:%M}")
        yield Rehearsal(cluster, service, instance, port)


def test_nights_on_two_workers(
    rehearsal: Rehearsal, alone: Path, tmp_path: Path, figures: Figures
) -> None:
    expected = {home: content(Home(alone / home)) for home in HOMES}
    began = datetime.now(UTC)
    folder = tmp_path / "analyst"
    with analyst(folder, rehearsal.cluster.bucket.endpoint, dict(os.environ)) as report:
        quiet_night(rehearsal, figures)
        require_same(rehearsal, expected, figures, "the quiet night")
        night_with_faults(rehearsal, figures)
        require_same(rehearsal, expected, figures, "the night with faults")
        check_requests(rehearsal, figures)
        stop_from_ui(rehearsal, figures)
        stale_builder(rehearsal, figures)
        commands_from_either_machine(rehearsal, figures)
        erase_on_one_machine(rehearsal, figures)
        until(is_same_day_behind, "ten minutes of the day are over", 700)
        wrong_clock(rehearsal, tmp_path, figures)
    figures.note("reads of the analyst, of versions", f"{report['reads']}, {report['versions']}")
    assert report["failures"] == []
    assert report["reads"] > (datetime.now(UTC) - began).total_seconds() / 10
    assert figures.failed() == []


def quiet_night(rehearsal: Rehearsal, figures: Figures) -> None:
    """The schedule ticks; nothing fails. What is measured is between the first and last request."""
    began = datetime.now(UTC)
    until(lambda: len(rehearsal.complete(began)) == NUMBER, "all accounts are read")
    runs = rehearsal.runs(began)
    assert len(runs) == NUMBER
    machines = {owner.partition(":")[0] for *_others, owner in runs}
    assert machines == set(WORKERS)
    until(lambda: rehearsal.has_published(began) and rehearsal.is_idle(), "all is published")
    last = max(ended for _name, _started, ended, *_others in runs)
    first = min(started for _name, started, *_others in runs)
    floors = {name: (sent - RATE) / RATE for name, _started, _ended, sent, *_others in runs}
    used = {
        name: floors[name] / (ended - started).total_seconds()
        for name, started, ended, *_others in runs
    }
    slowest = max(floors.values())
    wall = (last - first).total_seconds()
    figures.note("accounts, requests", f"{NUMBER}, {sum(run[3] for run in runs)}")
    figures.judge(
        "reading of all accounts, times the slowest account's floor",
        f"{wall:.0f} s / {slowest:.0f} s = {wall / slowest:.2f}",
        "at most 1.25",
        holds=wall <= 1.25 * slowest,
    )
    figures.judge(
        "limit used, by account",
        f"{min(used.values()):.0%} to {max(used.values()):.0%}",
        "95 %",
        holds=min(used.values()) >= 0.95,
    )
    published = datetime.now(UTC) - first
    figures.note("from the first request until all is published", seconds(published))


def night_with_faults(rehearsal: Rehearsal, figures: Figures) -> None:
    """Launched from the UI. Both workers are killed once, and each server is away for a while."""
    until(lambda: answers(rehearsal.port), "the webserver answers")
    began = datetime.now(UTC)
    backfills = {
        home: rehearsal.deployment(home).backfill([key(account) for account in ACCOUNTS[home]])
        for home in HOMES
    }
    faults_until_published(rehearsal, began, figures)
    for home, backfill in backfills.items():
        status = rehearsal.deployment(home).backfill_ended(backfill)
        figures.note(f"the backfill of {home}", status, "not failed by Dagster")
        assert status.startswith("COMPLETED")


def faults_until_published(rehearsal: Rehearsal, began: datetime, figures: Figures) -> None:
    cluster = rehearsal.cluster
    until(lambda: rehearsal.reading(began).total() == NUMBER, "all accounts are read at once")
    time.sleep(5)
    on_it = rehearsal.reading(began)
    cluster.kill("worker-a")
    figures.note("worker-a killed while it read", f"{on_it['worker-a']} of {NUMBER} accounts")
    stop_servers(rehearsal, figures)
    killed = rehearsal.kill_builder(WORKERS, began)
    until(lambda: len(rehearsal.complete(began)) == NUMBER, "all accounts are read again", 900)
    read = datetime.now(UTC)
    until(lambda: bool(killed), "a worker is killed while it publishes", 300)
    figures.note("killed while it published", killed[0])
    until(lambda: rehearsal.has_published(began) and rehearsal.is_idle(), "all is published", 900)
    figures.note("from the launch until all is read", seconds(read - began))
    figures.note("from the launch until all is published", seconds(datetime.now(UTC) - began))


def stop_servers(rehearsal: Rehearsal, figures: Figures) -> None:
    """Stop each server in turn, as if its machine lost its power, and start it again.

    PostgreSQL is first: until it is back, nothing can find the runs that the killed worker lost.
    That worker comes back with it.
    """
    cluster = rehearsal.cluster
    for server in (cluster.postgresql, cluster.redis, cluster.bucket):
        server.stop()
        time.sleep(AWAY)
        server.start()
        figures.note(f"{SERVERS[type(server)]} stopped", f"{AWAY:.0f} s, with its connections")
        time.sleep(3)
        if server is cluster.postgresql:
            cluster.start_worker("worker-a", 2)


def require_same(
    rehearsal: Rehearsal, expected: Mapping[str, object], figures: Figures, night: str
) -> None:
    """Require the tables that one machine gives, in which nothing is missing, or twice."""
    for home in HOMES:
        own = rehearsal.pulled(home)
        assert content(own) == expected[home], home
        total = USAGE * len(ACCOUNTS[home])
        assert rows(own, TWICE) == [(total, total, 0)]
    verify_all(rehearsal, "webserver")
    figures.note(f"{night}: tables", "those of one machine; each id of each account once", "same")


def verify_all(rehearsal: Rehearsal, machine: str) -> None:
    """Verify all homes at once."""
    started = [rehearsal.begin(machine, home, "verify") for home in HOMES]
    for process in started:
        require_end(process)


def check_requests(rehearsal: Rehearsal, figures: Figures) -> None:
    requests = rehearsal.service.statistics()["requests"]
    statuses = {status for counts in requests.values() for status in counts}
    refused = sum(counts.get("429", 0) for counts in requests.values())
    figures.note("answers with 429 in both nights", refused, "0")
    assert statuses == {"200"}


def stop_from_ui(rehearsal: Rehearsal, figures: Figures) -> None:
    began = datetime.now(UTC)
    deployment = rehearsal.deployment("south")
    run = deployment.run(key("south-0"))
    until(lambda: bool(rehearsal.reading(began)), "the account is read")
    asked = datetime.now(UTC)
    deployment.ask(TERMINATE, id=run)
    assert deployment.ended(run) == "CANCELED"
    figures.note("terminated from the UI, ended after", seconds(datetime.now(UTC) - asked))
    assert [outcome for *_others, outcome, _owner in rehearsal.runs(began)] == ["interrupted"]


def stale_builder(rehearsal: Rehearsal, figures: Figures) -> None:
    """A builder hangs, and loses its session; another machine publishes meanwhile."""
    stopped = list[subprocess.Popen[str]]()

    def stop(_machine: str) -> None:
        stopped[0].send_signal(signal.SIGSTOP)

    before = rehearsal.pointer("east")
    rehearsal.when_building(["worker-a"], stop)
    stopped.append(rehearsal.begin("worker-a", "east", "versions", "rebuild"))
    until(lambda: is_stopped(stopped[0]), "the builder hangs")
    rehearsal.query(SESSION_OF, "process % on worker-a (%")
    rehearsal.command("worker-b", "east", "versions", "rebuild")
    published = rehearsal.pointer("east")
    stopped[0].send_signal(signal.SIGCONT)
    output, _ = stopped[0].communicate(timeout=100)
    assert stopped[0].returncode == 1
    assert re.search("Another process has changed|lost the lock", output)
    assert rehearsal.pointer("east") == published != before
    figures.note("a stale builder", output.strip().splitlines()[-1][:80], "refused")


def is_stopped(process: subprocess.Popen[str]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def commands_from_either_machine(rehearsal: Rehearsal, figures: Figures) -> None:
    """What one machine changes, the next command of the other sees."""
    closing = rehearsal.begin("worker-b", "east", "close", "month", "2026-09", *SIGNED)
    pruning = rehearsal.begin("worker-a", "south", "prune", "--days=1")
    before = rehearsal.pointer("north")
    number = re.findall(r"v0*(\d+)", str(before["warehouse.duckdb"]["file"]))[0]
    rehearsal.command("worker-b", "north", "versions", "rebuild")
    rehearsal.command("worker-a", "north", "versions", "rollback", number, "--reason=why")
    assert rehearsal.pointer("north")["warehouse.duckdb"]["file"].endswith(f"{number}.duckdb")
    shown = rehearsal.command("worker-b", "north", "versions", "list", "--json")
    assert re.search(rf'"version": {number}\b.*?published', shown, re.DOTALL)
    require_end(closing)
    assert '"closed"' in rehearsal.command("worker-a", "east", "close", "list", "--json")
    require_end(pruning)
    figures.note("rollback, close, prune", "each seen by the other machine", "either machine")


def erase_on_one_machine(rehearsal: Rehearsal, figures: Figures) -> None:
    """The copies of the other machine are gone after its next command."""
    own = rehearsal.cluster.home_of("worker-a", "south")
    rehearsal.command("worker-a", "south", "status")  # brings what is published, whoever did it
    ((erased,),) = rows(own, "SELECT max(usage_id) FROM current.usage")
    rehearsal.command("worker-b", "south", "erase", erased, *BECAUSE)
    rehearsal.command("worker-a", "south", "status")
    assert rows(own, f"SELECT count(*) FROM current.usage WHERE usage_id = '{erased}'") == [(0,)]
    assert [*own.archive.glob("*/*/*.zst")] == []  # its copies may have had it
    verify_all(rehearsal, "worker-a")
    figures.note("erase", "the copies of the other machine are deleted", "either machine")


def is_same_day_behind() -> bool:
    """Return whether the clock that is behind has the same day: a run reads the current one."""
    now = datetime.now(UTC)
    return (now - MINUTES).date() == now.date()


def wrong_clock(rehearsal: Rehearsal, folder: Path, figures: Figures) -> None:
    """A worker's clock is behind: its proof has the service's times, too, and is published."""
    preload = {"LD_PRELOAD": str(compiled_clock(folder))}
    cluster = rehearsal.cluster
    for worker in WORKERS:
        cluster.end(worker)
    behind = str(-int(MINUTES.total_seconds()))
    cluster.start_worker("worker-b", 1, **preload, CLOCK_OFFSET=behind)
    before = datetime.now(UTC)
    deployment = rehearsal.deployment("east")
    known = len(deployment.runs("publish"))
    assert deployment.ended(deployment.run(key("east-0"), "partners")) == "SUCCESS"
    after = datetime.now(UTC)
    home = cluster.home_of("webserver", "east")
    with open_session(home) as session, session.metadata.transaction() as db:
        scans = db.query(Scan).filter_by(connection="east-0", stream="partners").all()
        read_now = [scan for scan in scans if before <= scan.started_at + MINUTES <= after]
        newest = max(read_now, key=lambda scan: scan.started_at)
        proof = session.archive.open_sealed(newest).completeness
    began = proof.service_started_at
    ended = proof.service_ended_at
    assert began
    assert ended
    assert before - timedelta(seconds=1) <= began <= ended <= after
    assert "the two disagree" in proof.sentence("partners")
    figures.note("a clock 10 minutes wrong: the proof", "has the service's time, and says so")
    until(lambda: len(deployment.runs("publish")) > known, "it is published")
    hour = {**preload, "CLOCK_OFFSET": "-3600"}
    refused = rehearsal.command("worker-b", "east", "versions", "build", code=1, **hour)
    assert "RequestTimeTooSkewed" in refused
    assert "Correct the clock of this machine." in refused
    figures.note("a clock 1 hour wrong", "the bucket refuses it: RequestTimeTooSkewed")


def compiled_clock(folder: Path) -> Path:
    """Return the library that makes the clock of a process differ."""
    compiler = shutil.which("cc")
    assert compiler, "The clock of one worker needs a C compiler: apt-get install gcc"
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, CLOCK, "-ldl"], check=True)
    return library


def next_minute(moment: datetime) -> datetime:
    """Return the first full minute that is not before a moment."""
    return moment + timedelta(seconds=-moment.timestamp() % 60)


def seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.0f} s"
