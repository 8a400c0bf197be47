"""Addresses of what several machines share: which are taken, which refused, never quoted."""

import os
from pathlib import Path

import pytest

from pipelines import settings
from pipelines.errors import ConfigurationError

PREFIX = "PARTNER_SYNC_"
CANARY = "canary8d21"
STATE = "postgresql+psycopg2://sync@db.example.com:5432/sync"
STORE = "s3://bucket/folder"
FILES = "s3://bucket/folder-of-files"
LAKE = "ducklake:postgres:dbname=lake host=db.example.com"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path))


def test_all_of_it_and_none_of_it_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("state", "archive", "warehouse", "lake_data")
    loaded = settings.load()
    assert [getattr(loaded, name) for name in names] == [None] * 4
    values = (STATE, STORE + "/", LAKE, FILES)
    for name, value in zip(names, values, strict=True):
        monkeypatch.setenv(PREFIX + name.upper(), value)
    loaded = settings.load()
    assert [getattr(loaded, name) for name in names] == [STATE, STORE, LAKE, FILES]


@pytest.mark.parametrize(
    "value", ["postgresql+psycopg2:///sync?host=/run/postgresql", f"{STATE}?sslmode=verify-full"]
)
def test_addresses_of_a_database(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(PREFIX + "STATE", value)
    assert settings.load().state == value


SHAPE = "must be postgresql+psycopg2://user@host:port/database"
PLAIN = "must hold no password"
BAD = [
    ("STATE", f"postgresql+psycopg2://sync:{CANARY}@host/sync", PLAIN),
    ("STATE", f"postgresql+psycopg2://host/sync?password={CANARY}", PLAIN),
    ("STATE", f"postgresql://{CANARY}/sync", SHAPE),
    ("STATE", f"postgresql+psycopg2://{CANARY}", SHAPE),
    ("STATE", f"postgresql+psycopg2://host:{CANARY}/sync", SHAPE),
    ("STATE", f"sqlite:///{CANARY}", SHAPE),
    ("ARCHIVE", f"s3://key:{CANARY}@bucket", "must hold no user or key"),
    ("ARCHIVE", f"/{CANARY}", "must be a folder of an object store"),
    ("WAREHOUSE", f"ducklake:postgres:dbname=a password={CANARY}", PLAIN),
    ("WAREHOUSE", f"ducklake:postgres:postgresql://a:{CANARY}@b/c", PLAIN),
    ("WAREHOUSE", f"{CANARY}.duckdb", "must be ducklake:postgres:"),
    ("WAREHOUSE", f"ducklake:postgres:postgresql://{CANARY}@b/c", "must be ducklake:postgres:"),
    ("WAREHOUSE", f"ducklake:postgres:dbname = {CANARY}", "must be ducklake:postgres:"),
    ("WAREHOUSE", f"ducklake:postgres:dbname='{CANARY}", "must be ducklake:postgres:"),
    ("LAKE_DATA", CANARY, "must be a folder of an object store"),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD)
def test_a_wrong_address_is_named_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError) as caught:
        settings.load()
    assert str(caught.value).startswith(f"{PREFIX}{name}: {words}")
    assert CANARY not in str(caught.value)


HALVES = [
    ({"ARCHIVE": STORE}, "_STATE is not"),
    ({"WAREHOUSE": LAKE, "LAKE_DATA": STORE}, "_STATE is not"),
    ({"STATE": STATE, "WAREHOUSE": LAKE}, "belong together"),
    ({"STATE": STATE, "LAKE_DATA": STORE}, "belong together"),
]


@pytest.mark.parametrize(("half", "words"), HALVES)
def test_a_half_is_refused(
    monkeypatch: pytest.MonkeyPatch, half: dict[str, str], words: str
) -> None:
    for name, value in half.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError, match=words):
        settings.load()


@pytest.mark.parametrize("files", [STORE, f"{STORE}/lake/", "s3://bucket"])
def test_neither_lies_within_the_other(monkeypatch: pytest.MonkeyPatch, files: str) -> None:
    given = {"STATE": STATE, "ARCHIVE": STORE, "WAREHOUSE": LAKE, "LAKE_DATA": files}
    for name, value in given.items():
        monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError, match="lie in one another"):
        settings.load()
