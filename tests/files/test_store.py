"""What both stores promise: a folder, and a bucket with a folder of copies (a real S3 server)."""

import os
from pathlib import Path

import pytest

from pipelines.files.store import FileStore, FolderStore

LARGE = os.urandom(40_000_000)  # several parts
Kept = tuple[FileStore, Path]


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.bucket)])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """A store, and the folder of its home."""
    if request.param == "folder":
        return FolderStore(), tmp_path
    from pipelines.files.cached import CachedStore  # noqa: PLC0415 - needs obstore

    return CachedStore(tmp_path, request.getfixturevalue("bucket")), tmp_path


def part(root: Path, content: bytes) -> Path:
    root.joinpath("archive").mkdir(exist_ok=True)
    file = root / "archive" / ".part"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("content", [b"", b"some", LARGE], ids=len)
def test_what_was_put_is_there_until_it_is_deleted(kept: Kept, content: bytes) -> None:
    store, root = kept
    file = root / "archive" / "a b=ü.zst"
    assert not store.get(file).exists()
    assert store.list(root / "archive", "*.zst") == {}
    store.put(part(root, content), file)
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    assert store.get(file).read_bytes() == content
    assert store.list(root / "archive", "*.zst").keys() == {file}
    assert store.list(root / "archive", "*.zst")[file].bytes == len(content)
    store.put(part(root, b"other"), file)
    assert store.get(file).read_bytes() == b"other"
    assert [each.bytes for each in store.list(root / "archive", "*.zst").values()] == [5]
    store.delete(file)
    store.delete(file)
    assert not store.get(file).exists()
    assert store.list(root / "archive", "*.zst") == {}


def test_only_what_matches_in_a_folder_is_listed(kept: Kept) -> None:
    store, root = kept
    for name in ("a/b/x.zst", "a/x.zst", "a/b/x.open", "archives/x.zst"):
        file = root / "archive" / name
        if name.startswith("archives"):
            file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        store.put(part(root, b"1"), file)
    assert [*store.list(root / "archive", "*/*/*.zst")] == [root / "archive/a/b/x.zst"]
    assert store.list(root / "nothing", "*") == {}


def test_a_part_that_is_not_there_replaces_nothing(kept: Kept) -> None:
    store, root = kept
    file = root / "archive" / "x.zst"
    store.put(part(root, b"1"), file)
    with pytest.raises(OSError, match="No such file"):
        store.put(root / "archive" / ".gone", file)
    assert store.get(file).read_bytes() == b"1"
