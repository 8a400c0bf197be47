"""Which store the settings of a home name, and what is refused before any bucket is asked."""

import sys
from pathlib import Path

import pytest

from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.core.clock import Clock
from pipelines.core.errors import ConfigurationError
from pipelines.files.open_store import open_bucket, open_store
from pipelines.files.store import FileStore, FolderStore
from pipelines.metadata.engine import Metadata


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


def test_a_home_without_a_bucket_has_its_folder(tmp_path: Path) -> None:
    assert isinstance(opened(tmp_path), FolderStore)


def test_the_missing_package_of_buckets_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "pipelines.files.bucket", raising=False)
    with pytest.raises(ConfigurationError, match="the package obstore is not installed") as refused:
        open_bucket("s3://bucket/prefix", None)
    assert "partner-sync[cluster]" in refused.value.remedy


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
