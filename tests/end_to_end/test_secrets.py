"""No file of a home but its configuration holds a credential, whatever the service echoes."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import duckdb
import zstandard

from pipelines.app.progress import Progress
from pipelines.app.sync import ReadRequest, sync
from pipelines.config.home import Home
from tests.homes import make_home, opened, records
from tests.sandbox.running import Running, started

SIZES = ("--rate", "1000", "--partners", "25", "--usage", "200", "--billing", "50")


def test_no_file_holds_a_credential(sandbox: Running, tmp_path: Path) -> None:
    """The secret is a partner's name, so that every list of partners echoes it."""
    secret = str(records(sandbox, "partners")[3]["name"])
    encoded = base64.b64encode(secret.encode()).decode()
    with started(*SIZES, secret=secret) as running:
        home = make_home(tmp_path / "home", running)
        (home.root / "config" / "acme-secret").write_text(secret)
        running.fault("storm-garbled", "/v2/usage", value=encoded, times=1)
        running.fault("redirect", "/v2/billing", value=f"https://{quote(secret)}.invalid")
        with opened(home) as session:
            result = sync(session, [ReadRequest("acme")], Progress())
            redactor = session.redactor
    assert [str(each.state) for each in result.streams] == ["complete", "complete", "failed"]
    forms = {
        secret.encode(),
        encoded.encode(),
        base64.urlsafe_b64encode(secret.encode()),
        quote(secret).encode(),
        json.dumps(secret)[1:-1].encode(),
    }
    files = 0
    for name, content in contents(home):
        files += 1
        assert [form for form in forms if form in content] == [], name
        assert redactor.clean_bytes(content) == content, name  # it knows the tokens, too
    assert files > 8
    with duckdb.connect(home.link, read_only=True) as db:
        names = db.sql("SELECT partners.name FROM current.partners AS partners").fetchall()
    assert ("[redacted]",) in names


def contents(home: Home) -> Iterator[tuple[str, bytes]]:
    """Yield every file outside of config, as it is and as it reads."""
    for file in home.root.rglob("*"):
        if file.is_file() and home.settings_file.parent not in file.parents:
            yield file.name, file.read_bytes()
            if ".zst" in file.name:
                frames = zstandard.ZstdDecompressor().stream_reader(
                    file.read_bytes(), read_across_frames=True
                )
                yield f"{file.name}, decompressed", frames.read()
    with duckdb.connect(home.link, read_only=True) as db:
        tables = db.sql("SELECT schema, name FROM (SHOW ALL TABLES)").fetchall()
        for schema, table in tables:
            values = db.sql(f'FROM "{schema}"."{table}"').fetchall()
            yield f"{schema}.{table}", "\n".join(map(str, values)).encode()
