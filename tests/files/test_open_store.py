"""Which home may use a bucket, and what is said to those that may not."""

from pathlib import Path

import pytest
from sqlalchemy import delete

from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core.errors import ConfigurationError
from pipelines.files.bucket import Bucket
from pipelines.files.cached import CachedStore
from pipelines.files.open_store import HOME_ID, require_settings
from pipelines.metadata.engine import Metadata
from pipelines.metadata.tables import HomeRow
from tests.files.test_settings import opened

pytest_plugins = ["tests.bucket", "tests.postgresql"]


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
    with pytest.raises(ConfigurationError, match="but files is not set"):
        require_settings(Settings(home=Home(tmp_path / "home"), metadata_url=server_url))
    own.touch()
    with pytest.raises(ConfigurationError, match="copies from"):
        opened(tmp_path / "home", **named | {"files": f"{bucket.url}/other"})
