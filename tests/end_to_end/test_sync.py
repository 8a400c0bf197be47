"""One sync of the sandbox: every value arrives, the file is published, the archive is evidence."""

import shutil
import stat
from hashlib import sha256
from pathlib import Path

import duckdb
import httpx
import pytest
import zstandard

from pipelines import run
from pipelines.cli.sandbox import Service
from pipelines.settings import Settings, load
from pipelines.streams import STREAMS
from tests import landed
from tests.end_to_end.conftest import Point


@pytest.fixture
def settings(point: Point, unlimited: Service) -> Settings:
    """Return settings for the unlimited sandbox."""
    return point(unlimited)


@pytest.fixture(scope="session")
def once(unlimited: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home that was synced once."""
    home = tmp_path_factory.mktemp("once") / "home"
    with pytest.MonkeyPatch.context() as patched:
        for name, value in unlimited.environment.items():
            patched.setenv(name, value)
        assert sync(load(home)).exit_code == 0
    return home


@pytest.fixture
def synced(once: Path, settings: Settings) -> Settings:
    """Return the settings of a copy of it."""
    shutil.copytree(once, settings.home, symlinks=True)
    return settings


def sync(settings: Settings) -> run.Outcome:
    with run.open(settings) as session:
        return run.sync(session, run.orders(session))


def served(service: Service, path: str, limit: int) -> list[landed.Row]:
    """Read a list with a client of our own, page by page."""
    env = service.environment
    credentials = {
        "client_id": env["PARTNER_SYNC_CLIENT_ID"],
        "client_secret": env["PARTNER_SYNC_CLIENT_SECRET"],
        "audience": env["PARTNER_SYNC_AUDIENCE"],
        "grant_type": "client_credentials",
    }
    found: list[landed.Row] = []
    with httpx.Client(base_url=service.url) as http:
        token = http.post("/oauth/token", json=credentials).json()["access_token"]
        offset: int | None = 0
        while offset is not None:
            query: dict[str, int] = {"limit": limit, "offset": offset}
            headers = {"Authorization": f"Bearer {token}"}
            page = http.get(path, params=query, headers=headers).raise_for_status()
            found += landed.records(page.content)
            offset = page.json()["pagination"]["next_offset"]
    return found


def test_every_value_of_every_row_is_what_the_service_sent(
    synced: Settings, unlimited: Service
) -> None:
    with duckdb.connect(synced.place.link, read_only=True) as reader:
        for stream in STREAMS:
            sent = served(unlimited, stream.path, stream.limit)
            assert landed.assert_landed(reader, stream.name, sent) > len(sent)


def test_money_and_times_have_exact_types(synced: Settings) -> None:
    with duckdb.connect(synced.place.link, read_only=True) as reader:
        types = {
            (table, column): kind
            for table, column, kind in reader.execute(
                "SELECT table_name, column_name, data_type FROM duckdb_columns() "
                "WHERE schema_name = 'current'"
            ).fetchall()
        }
        offsets = reader.execute(
            "SELECT count(DISTINCT recorded_at__offset) FROM current.usage"
        ).fetchone()
        digits = reader.execute(
            "SELECT max(length(replace(amount::VARCHAR, '.', ''))), max(sequence) "
            "FROM current.usage"
        ).fetchone()
    assert not {kind for kind in types.values() if kind in {"DOUBLE", "FLOAT"}}
    for table, column in (
        ("usage", "amount"),
        ("usage", "unit_price"),
        ("billing", "total"),
        ("billing__lines", "amount"),
        ("usage__events", "fee"),
    ):
        assert types[table, column].startswith("DECIMAL"), (table, column)
    assert types["usage", "recorded_at"] == "TIMESTAMP WITH TIME ZONE"
    assert types["usage", "reference"] == "VARCHAR"
    assert offsets == (5,)
    assert digits is not None
    assert digits[0] >= 18
    assert digits[1] > 2**53


def test_a_second_sync_is_another_manifest_and_another_version(settings: Settings) -> None:
    first, second = sync(settings), sync(settings)

    home = settings.place
    assert first.version is not None
    assert second.version is not None
    assert [first.version.version, second.version.version] == [1, 2]
    grown = {"meta.folds": (3, 6), "meta.proofs": (3, 6)}
    counts = zip(first.version.counts.items(), second.version.counts.values(), strict=True)
    changed = {name: (was, now) for (name, was), now in counts if was != now}
    assert changed.pop("meta.runs") == (1, 2)
    assert changed.pop("meta.requests")
    assert changed == grown
    assert home.link.readlink() == Path("published/warehouse.v00000002.duckdb")
    manifests = sorted(file.name for file in (home.archive / "manifests").rglob("*usage/*.json"))
    assert [name[-8:] for name in manifests] == ["001.json", "002.json"]


def test_a_page_of_the_archive_is_the_body_as_received(synced: Settings) -> None:
    pages = list((synced.place.archive / "pages").rglob("*.json.zst"))
    assert len(pages) == 2 + 5 + 3  # ceil(120/100) partners, 2300/500 usage, 230/100 billing
    for page in pages:
        body = zstandard.ZstdDecompressor().decompress(page.read_bytes())
        assert sha256(body).hexdigest() == page.name.removesuffix(".json.zst")


def test_only_the_owner_reads_archive_state_and_work_and_everybody_the_published_file(
    settings: Settings,
) -> None:
    sync(settings)

    home = settings.place
    for folder in (home.archive, home.state, home.work, home.config):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        for file in folder.rglob("*"):
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o755
    assert stat.S_IMODE(home.link.stat().st_mode) == 0o444


def test_an_analyst_with_the_file_open_disturbs_nobody(synced: Settings) -> None:
    with duckdb.connect(synced.place.link, read_only=True) as reader:
        before = reader.execute("SELECT count(*) FROM current.usage").fetchone()

        assert sync(synced).exit_code == 0

        assert reader.execute("SELECT count(*) FROM current.usage").fetchone() == before
    with duckdb.connect(synced.place.link, read_only=True) as reader:
        assert reader.execute("SELECT DISTINCT version FROM meta.freshness").fetchall() == [(2,)]


def test_what_the_work_database_lost_is_folded_again(synced: Settings) -> None:
    shutil.rmtree(synced.place.work)

    with run.open(synced) as session:
        outcome = run.sync(session, run.orders(session, run.Choice(streams=["partners"])))

    assert outcome.exit_code == 0
    assert [each.stream for each in outcome.streams] == ["partners"]
    with duckdb.connect(synced.place.link, read_only=True) as reader:
        assert reader.execute("SELECT count(*) FROM current.usage").fetchone() == (2300,)
        freshness = reader.execute("SELECT stream, rows FROM meta.freshness").fetchall()
    assert freshness == [("billing", 230), ("partners", 120), ("usage", 2300)]


def test_a_sync_that_reads_nothing_publishes_its_doubt_and_the_same_rows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sync(settings)
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", "wrong")

    second = sync(settings)

    assert (first.exit_code, second.exit_code) == (0, 1)
    assert all("no token: 401" in str(each.error) for each in second.streams)
    assert settings.place.link.resolve().name == "warehouse.v00000002.duckdb"
    with duckdb.connect(settings.place.link, read_only=True) as reader:
        doubts = reader.execute("SELECT DISTINCT doubt FROM meta.proofs").fetchall()
    assert "a later reading failed, these are the rows of" in str(doubts)
    assert first.version is not None
    assert second.version is None
