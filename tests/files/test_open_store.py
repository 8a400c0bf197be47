"""Which home may use a bucket, and what is said to those that may not."""

from pathlib import Path

import pytest
from sqlalchemy import delete

from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError
from pipelines.files.bucket import Bucket
from pipelines.files.cached import CachedStore
from pipelines.files.open_store import HOME_ID, open_store
from pipelines.files.store import FileStore, FolderStore
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import HomeRow

pytest_plugins = ["tests.bucket", "tests.postgresql"]


def opened(folder: Path, **settings: str | None) -> FileStore:
    home = Home(folder).prepare()
    lines = [f'{name} = "{value}"\n' for name, value in settings.items() if value]
    home.settings_file.write_text("".join(lines))
    loaded = load_settings(home)
    metadata = Metadata.open(home.metadata_file, loaded.metadata_url)
    try:
        return open_store(loaded, metadata, Clock())
    finally:
        metadata.close()


def forget_owner(url: str) -> None:
    metadata = Metadata.open(Path("unused"), url)
    with metadata.transaction() as session:
        session.execute(delete(HomeRow))
    metadata.close()


def test_a_bucket_belongs_to_one_database(
    tmp_path: Path, bucket: Bucket, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = {"files": bucket.url, "files_endpoint": bucket.endpoint, "metadata_url": server_url}
    for machine in ("one", "two", "two"):
        assert isinstance(opened(tmp_path / machine, **named), CachedStore)
    known = bucket.read(HOME_ID)
    assert known
    forget_owner(server_url)  # as in an empty database of another home
    with pytest.raises(ConfigurationError, match="belongs to a home whose metadata database"):
        opened(tmp_path / "one", **named)
    assert bucket.read(HOME_ID) == known
    other = named | {"files": f"{bucket.url}/other"}
    opened(tmp_path / "other", **other)
    with pytest.raises(ConfigurationError, match="belongs to a home whose metadata database"):
        opened(tmp_path / "one", **named)


def test_a_home_without_a_bucket_has_its_folder(tmp_path: Path) -> None:
    assert isinstance(opened(tmp_path), FolderStore)


def test_a_bucket_needs_a_database_of_a_server(tmp_path: Path, bucket: Bucket) -> None:
    with pytest.raises(ConfigurationError, match="metadata_url names no PostgreSQL database"):
        opened(tmp_path, files=bucket.url)
    assert bucket.list() == {}


def test_files_of_the_home_itself_are_never_taken_for_copies(
    tmp_path: Path, bucket: Bucket, server_url: str
) -> None:
    named = {"files": bucket.url, "files_endpoint": bucket.endpoint, "metadata_url": server_url}
    own = tmp_path / "home" / "versions" / "v00000001.duckdb"
    own.parent.mkdir(parents=True)
    own.touch()
    with pytest.raises(ConfigurationError, match=r"versions.* Nothing was changed"):
        opened(tmp_path / "home", **named)
    own.unlink()
    opened(tmp_path / "home", **named)
    own.touch()
    opened(tmp_path / "home", **named)
    assert not own.exists()  # a copy of what is not in the bucket
    own.touch()
    with pytest.raises(ConfigurationError, match="copies from"):
        opened(tmp_path / "home", **named | {"files": f"{bucket.url}/other"})


@pytest.mark.parametrize(
    "setting",
    [
        {"files": "/folder"},
        {"files": "s3://key:canary@bucket/x"},
        {"files": "s3://b/x?secret=canary"},
        {"files_endpoint": "https://canary:secret@example.com"},
        {"files_endpoint": "ftp://example.com"},
    ],
)
def test_a_setting_that_is_wrong_is_refused_without_its_value(
    tmp_path: Path, setting: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(setting))}: must be") as refused:
        opened(tmp_path, **setting)
    assert "canary" not in str(refused.value)
