"""The program `partner-sync` as a user runs it: what it prints and with which code it ends."""

import shlex
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from pipelines.cli.sandbox import Service
from tests.cli.program import PROGRAM, clean, ran
from tests.sandbox.running import sandboxed

UNSET = (
    "PARTNER_SYNC_BASE_URL, PARTNER_SYNC_AUTH_URL, PARTNER_SYNC_AUDIENCE, PARTNER_SYNC_CLIENT_ID"
)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Name a service that nobody serves; tests that need one start it."""
    environment = {"PARTNER_SYNC_HOME": str(tmp_path / "home")}
    return Service("http://127.0.0.1:9", environment)


def test_sync_ends_with_a_table_the_file_and_the_line_that_opens_it(tmp_path: Path) -> None:
    home = tmp_path / "home with space"
    sizes = ("--partners=20", "--usage=600", "--billing=60")
    with sandboxed("--rate=1000", *sizes) as service:
        done = ran(service.environment | {"PARTNER_SYNC_HOME": str(home)}, "sync")

    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    heading = [
        "stream",
        "rows",
        "pages",
        "requests",
        "429s",
        "seconds",
        "waited",
        "proof",
        "result",
    ]
    assert heading in lines
    assert "Contains every row that existed throughout " in done.stdout
    assert any(line[:3] == ["usage", "600", "3"] for line in lines)
    assert "published warehouse.v00000001.duckdb" in done.stdout
    opening = shlex.split(done.stdout.splitlines()[-1])
    shown = subprocess.run(opening, capture_output=True, text=True, check=True)
    assert "usage_id" in shown.stdout
    assert service.environment["PARTNER_SYNC_CLIENT_SECRET"] not in done.stdout + done.stderr


def test_one_stream_can_be_chosen(tmp_path: Path) -> None:
    with sandboxed("--rate=1000", "--partners=20", "--usage=1", "--billing=1") as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(tmp_path / "home")}
        done = ran(environment, "sync", "--stream", "partners")

    assert done.returncode == 0, done.stderr
    assert "partners" in done.stdout
    assert "usage " not in done.stdout.replace("current.usage", "")


def test_plan_and_status_know_the_last_proofs(tmp_path: Path) -> None:
    with sandboxed("--rate=1000", "--partners=20", "--usage=600", "--billing=1") as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(tmp_path / "home")}
        first = ran(environment, "plan")
        ran(environment, "sync", "--stream", "usage")
        planned, stands = ran(environment, "plan"), ran(environment, "status")

    assert (first.returncode, planned.returncode, stands.returncode) == (0, 0, 0)
    assert "requests: 1, and 1 for tokens" in first.stdout  # who we are; nothing else is known
    assert "never read, so not in this sum: billing, partners, usage" in first.stdout
    assert ["default", "usage", "600", "3"] in [
        line.split() for line in planned.stdout.splitlines()
    ]
    assert "requests: 4, and 1 for tokens" in planned.stdout
    assert "the next night begins at" in planned.stdout
    assert "never read to its end" in stands.stdout
    assert "COMPLETE" in stands.stdout
    assert "request budget of 127.0.0.1" in stands.stdout


def test_publish_steps_back_and_says_so(tmp_path: Path) -> None:
    with sandboxed("--rate=1000", "--partners=20", "--usage=1", "--billing=1") as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(tmp_path / "home")}
        empty = ran(environment, "publish")
        ran(environment, "sync")
        ran(environment, "sync")
        wrong = ran(environment, "publish", "--to=1")
        back = ran(environment, "publish", "--rollback", "--by=ann", "--reason=wrong amounts")
        again, stands = ran(environment, "publish"), ran(environment, "status")
        missing = ran(environment, "publish", "--rollback", "--to=7")

    assert "nothing was folded yet" in empty.stdout
    assert (wrong.returncode, missing.returncode) == (2, 2)
    assert "there are 1, 2" in missing.stderr
    words = "version 2 was rolled back to 1 by ann at"
    assert f"analysts open warehouse.v00000001.duckdb; {words}" in back.stdout
    assert [words in each.stdout for each in (again, stands)] == [True, True]
    assert "(wrong amounts); the next fold of something new publishes again" in stands.stdout


def test_runs_lists_what_was_run(tmp_path: Path) -> None:
    with sandboxed("--rate=1000", "--partners=20", "--usage=1", "--billing=1") as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(tmp_path / "home")}
        before = ran(environment, "runs")
        ran(environment, "sync")
        done = ran(environment, "runs")

    assert (before.returncode, before.stdout) == (0, "nothing was run yet\n")
    assert done.returncode == 0, done.stderr
    (line,) = (line.split() for line in done.stdout.splitlines() if "published" in line)
    assert line[2] == "default"


def test_an_interrupted_sync_is_told_as_such(tmp_path: Path) -> None:
    with sandboxed("--rate=5", "--window=100", "--partners=600") as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(tmp_path / "home")}
        with subprocess.Popen(
            [PROGRAM, "sync", "--stream", "partners"],
            env=clean(environment | {"PARTNER_SYNC_WINDOW": "100"}),
            stderr=subprocess.PIPE,
            text=True,
            # Hear Ctrl-C as in a terminal: what is started in the background ignores it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        ) as process:
            assert process.stderr is not None
            waits = next(line for line in process.stderr if "waiting" in line)
            process.send_signal(signal.SIGINT)
            words = process.stderr.read()
        listed = ran(environment, "runs")

    assert "rate limit" in waits
    assert process.returncode == 130
    assert "interrupted" in words
    assert "Traceback" not in words
    assert "interrupted" in listed.stdout


def test_check_says_what_may_be_read(tmp_path: Path) -> None:
    clients = tmp_path / "clients.toml"
    clients.write_text(
        '[[clients]]\nid = "narrow"\nsecret = "x"\nactor = "partner"\nscopes = ["usage:read"]\n'
    )
    clients.chmod(0o600)
    with sandboxed("--rate=1000", f"--clients={clients}") as service:
        environment = service.environment | {
            "PARTNER_SYNC_HOME": str(tmp_path / "home"),
            "PARTNER_SYNC_CLIENT_ID": "narrow",
            "PARTNER_SYNC_CLIENT_SECRET": "x",
        }
        checked = ran(environment, "check")
        synced = ran(environment, "sync")

    assert checked.returncode == 1
    answers = {line.split()[0]: line for line in checked.stdout.splitlines() if "/v2/" in line}
    assert "partner narrow" in answers["/v2/whoami"]
    assert "may be read" in answers["/v2/usage"]
    assert "403 on /v2/billing" in answers["/v2/billing"]
    assert synced.returncode == 3
    assert "403 on /v2/partners" in synced.stderr
    assert "1 of 3 streams done; the others keep the rows" in synced.stderr
    assert "Traceback" not in synced.stderr


SET = {f"PARTNER_SYNC_{name}": "https://127.0.0.1:9" for name in ("BASE_URL", "AUTH_URL")} | {
    f"PARTNER_SYNC_{name}": "somebody" for name in ("AUDIENCE", "CLIENT_ID")
}
FAILURES = [
    ({}, ["sync"], 2, UNSET),
    ({}, ["check"], 2, UNSET),
    ({"PARTNER_SYNC_BASE_URL": "http://example.com"}, ["sync"], 2, "PARTNER_SYNC_BASE_URL"),
    ({"PARTNER_SYNC_WINDOW": "soon"}, ["sync"], 2, "PARTNER_SYNC_WINDOW"),
    ({"PARTNER_SYNC_KEEP_VERSION": "9"}, ["sync"], 2, "no such setting: PARTNER_SYNC_KEEP_VERSION"),
    (SET, ["sync", "--stream", "invoices"], 2, "no stream 'invoices'; there are billing, partners"),
    (SET, ["sync"], 2, "PARTNER_SYNC_CLIENT_SECRET is not set"),
    (SET, ["sync", "--connection", "acme"], 2, "no connection 'acme'; there are default"),
    ({}, ["sync", "--nonsense"], 2, "--nonsense"),
]


@pytest.mark.parametrize(("environment", "arguments", "code", "words"), FAILURES)
def test_a_failure_is_a_sentence_and_a_code(
    service: Service, environment: dict[str, str], arguments: list[str], code: int, words: str
) -> None:
    done = ran(service.environment | environment, *arguments)

    assert done.returncode == code
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert "soon" not in done.stderr.replace("sooner", "")


def test_demo_empties_only_what_a_demo_made(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")

    for home in (tmp_path, tmp_path / "precious"):
        done = ran({}, "demo", "--home", str(home))

        assert done.returncode == 2
        assert "was not made by a demo" in " ".join(done.stderr.split())
    assert (tmp_path / "precious").exists()


def test_sandbox_passes_its_options_on(tmp_path: Path) -> None:
    done = ran({}, "sandbox", "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "--latency-ms" in done.stdout
    assert ran({}, "sandbox", "--rate=-1").returncode == 2


def test_version_and_help(tmp_path: Path) -> None:
    assert ran({}, "version").stdout == "partner-sync 0.1.0\n"
    helped = ran({}, "--help", cwd=tmp_path).stdout
    assert all(verb in helped for verb in ("demo", "sync", "sandbox", "check", "version"))
    assert ran({}).returncode == 2


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    environment = {
        "PARTNER_SYNC_HOME": str(file),
        "PARTNER_SYNC_BASE_URL": "https://127.0.0.1:9",
        "PARTNER_SYNC_AUTH_URL": "https://127.0.0.1:9",
        "PARTNER_SYNC_AUDIENCE": "a",
        "PARTNER_SYNC_CLIENT_ID": "c",
    }
    done = ran(environment, "check")
    assert done.returncode == 2
    assert str(file) in "".join(done.stderr.split())
    assert stat.S_ISREG(file.stat().st_mode)
