"""Credentials that the service echoes are nowhere: not shown, logged, stored or published.

A proxy writes them into every place of every answer, in every encoding.
"""

import json
import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count, cycle
from pathlib import Path

import dagster as dg
import duckdb
import httpx
import pytest

from assets.names import Names, partition_key, register_connections
from assets.raw import raw_assets
from assets.resources import HomeResource
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.core.text import REDACTED
from tests.archive.scans import decompressed
from tests.cli.conftest import Cli
from tests.core.test_text import ENCODINGS
from tests.end_to_end.proxy import changed_answers
from tests.homes import make_home, rows
from tests.sandbox.running import API_KEY, Running, started

pytestmark = pytest.mark.long
SECRET = "canary/+é ~secret-7f3a9c"
FORMS: dict[str, Callable[[str], str]] = {**ENCODINGS, "hex": lambda text: text.encode().hex()}
# Where a list that fails echoes a credential, and with which status: none is tried again.
PLACES = {"title": 403, "detail": 404, "redirect": 307, "html": 400}
STREAM = '[streams.{0}_{1}_{2}]\npath = "/v2/{0}/{1}"\nsurface = "{2}"\n'
GATEWAYS = '[streams.gateways]\npath = "/v2/gateways"\nsurface = "merchant"\n'
RECORD = re.compile(r'\{(?="(?:partner|usage|billing|gateway)Id":)')
SIZES = ("--rate", "1000", "--partners", "25", "--usage", "100", "--billing", "25")
SEEN, TURN = {SECRET, API_KEY}, count()
LEAST = 20  # characters: what is cut off may hold the begin of a credential
TRACE = f"trace record acme partners {REDACTED}"
COMMANDS = {  # and their exit codes
    **dict.fromkeys(("sync", "status"), 3),
    **dict.fromkeys(("check", "trace record acme partners nobody"), 2),
    **dict.fromkeys(("discover acme", "connections", "plan", "runs", TRACE, "export csv"), 0),
}


def failing(place: str, form: str) -> httpx.Response:
    """Return an answer that echoes a credential in one place and in all that is about it."""
    members = {"type": "http://x/problems/FORM", "instance": "/FORM", place: "FORM"}
    text = "<html>FORM</html>" if place == "html" else json.dumps({**members, "FORM": ["FORM"]})
    headers = dict.fromkeys((b"set-cookie", b"www-authenticate", b"retry-after"), form.encode())
    headers[b"location"] = f"https://{form}.invalid/{form}?{form}".encode()
    content = text.replace("FORM", form)
    return httpx.Response(PLACES[place], headers=[*headers.items()], content=content)


def echo(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
    """Echo the credentials of a request in its answer; keep all of them."""
    path, headers = request.url.path, request.headers
    token = headers.get("authorization", "").removeprefix("Bearer ")
    SEEN.update({token} - {""})
    known = [API_KEY] if "x-api-key" in headers else [SECRET, token] if token else [SECRET]
    forms = [encode(each) for each in known for encode in FORMS.values()]
    form = forms[next(TURN) % len(forms)]
    if found := re.fullmatch(r"/v2/(\w+)/(\d+)", path):
        return failing(found[1], forms[int(found[2]) % len(forms)])
    if path == "/oauth/token":
        return failing("title", form) if b"denied" in request.content else answer
    echoed = [(name, form.encode()) for name in (b"x-request-id", b"x-echo", b"server")]
    content = body(path, answer.text, forms)
    return httpx.Response(200, headers=[*answer.headers.raw, *echoed], content=content)


def body(path: str, text: str, forms: list[str]) -> str:
    """Return a body that echoes all forms; they are written as they are, escapes included."""
    members = [f'"e{at}":"says {form}","{form}":["{form}"]' for at, form in enumerate(forms)]
    if path == "/v2/whoami":
        return f"{{{','.join(members)},{text[1:]}"
    if path.startswith("/docs/"):
        plans = json.dumps(json.loads(text)["paths"]["/v2/plans"])
        lists = (f'"/v2/{form}":{plans}' for form in forms)
        return text.replace('"paths":{', f'"paths":{{{",".join(lists)},')
    # NaN sends a record to quarantine. The first partner's key is a credential, too.
    turns = zip(cycle(members), cycle([*['"odd":1'] * 59, '"odd":NaN']), strict=False)
    more = (f'"deep":[{{{one}}}],{one},{odd}' for one, odd in turns)
    text = RECORD.sub(lambda _found: f"{{{next(more)},", text)
    return re.sub('"partnerId":"[^"]+"', f'"partnerId":"{forms[0]}"', text, count=1)


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    """A service that echoes; its lists below /v2/title and so on fail."""
    with started(*SIZES, secret=SECRET) as sandbox, changed_answers(sandbox, echo) as seen:
        yield seen


@pytest.fixture
def home(service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home with a connection of each surface, and two that get no token.

    Of the first one, a command prints the secret. Of `failing`, it does so and fails.
    """
    made = make_home(tmp_path / "home", service, "denied", client_id="denied")
    made.settings_file.with_name("denied-secret").write_text(SECRET, encoding="utf-8")
    for name, code in (("acme", 0), ("failing", 1)):
        command = f"sh -c 'echo \"{SECRET}\" | tee /dev/stderr; exit {code}'"
        fields = {**service.connection, "secret_command": command}
        del fields["secret"]
        add_connection(made.connections_file, name, fields)
    add_connection(made.connections_file, "shop", service.merchant_connection)
    monkeypatch.setenv("SANDBOX_API_KEY", API_KEY)
    failing_lists = (
        STREAM.format([*PLACES][(at + turn) % len(PLACES)], at, surface)
        for at in range(2 * len(FORMS))
        for turn in range(2)
        for surface in ("partner", "merchant")
    )
    made.settings_file.write_text(GATEWAYS + "".join(failing_lists))
    return made


def test_no_output_and_no_file_holds_a_credential(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    cli, texts = Cli(home), {}
    for command, code in COMMANDS.items():
        for more in ([], ["--json"]):
            texts[" ".join((command, *more))] = cli(*command.split(), *more, code=code).output
    assert all(REDACTED in texts[name] for name in ("sync", "status", "runs", TRACE))
    assert rows(home, "SELECT count(*) > 0 FROM quarantine.records") == [(True,)]
    texts |= {**dict(contents(home)), "log": caplog.text}
    assert sum(REDACTED in text for name, text in texts.items() if ".zst, " in name) > len(FORMS)
    assert holding(texts.items()) == []


def test_no_event_of_dagster_holds_a_credential(home: Home) -> None:
    settings, logs = load_settings(home), {}
    with dg.DagsterInstance.ephemeral() as instance:
        register_connections(instance, Names(), settings)
        for name in settings.connections():
            run = dg.materialize(
                [raw_assets(Names(), settings)],
                partition_key=partition_key(name, datetime.now(UTC).date()),
                instance=instance,
                resources={"home": HomeResource(path=str(home.root))},
                raise_on_error=False,
            )
            logs[name] = "".join(map(dg.serialize_value, instance.all_logs(run.run_id)))
    assert all("Some lists have no scan." in text for text in logs.values())
    assert [name for name in logs if REDACTED in logs[name]] == ["acme", "shop"]
    assert holding(logs.items()) == []


def holding(texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of texts that hold the begin of a credential, wrapped or as a column."""

    def squashed(text: str) -> str:
        return re.sub("[^0-9a-z]", "", text.lower())

    forms = (encode(each) for each in SEEN for encode in FORMS.values())
    needle = re.compile("|".join({squashed(form)[:LEAST] for form in forms}))
    return [name for name, text in texts if needle.search(squashed(text))]


def contents(home: Home) -> Iterator[tuple[str, str]]:
    """Yield every file outside of config, and what archive and databases hold."""
    for file in home.root.rglob("*"):
        if file.is_file() and home.settings_file.parent not in file.parents:
            yield str(file), file.read_bytes().decode("latin-1")
            if ".zst" in file.name:
                yield f"{file}, decompressed", decompressed(file).decode("latin-1")
    with duckdb.connect(home.link, read_only=True) as db:
        tables = db.sql("SELECT schema, name FROM (SHOW ALL TABLES)").fetchall()
        described = [f"duckdb_{each}()" for each in ("columns", "tables", "views", "functions")]
        for table in [*(f'"{schema}"."{name}"' for schema, name in tables), *described]:
            yield table, str(db.sql(f"FROM {table}").fetchall())
    with closing(sqlite3.connect(home.metadata_file)) as metadata:
        yield "metadata.db", "\n".join(metadata.iterdump())
