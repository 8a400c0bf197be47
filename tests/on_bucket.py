"""Homes of tests whose files are in a bucket. Their database stays SQLite: it is not what differs.

`moved` puts the files of a home there, `elsewhere` is the same home on another machine.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from pipelines.archive.archive import Archive
from pipelines.files.bucket import Bucket
from pipelines.files.cached import KEPT, CachedStore
from pipelines.files.pointer import LINKS
from pipelines.files.store import MARK
from pipelines.warehouse.version_files import Warehouse
from tests.versions.homes import Stores


def moved(stores: Stores, bucket: Bucket) -> Stores:
    """Upload the files of a home, publish what it has published; its folder has copies then."""
    root = stores.home.root
    published = {name: (root / name).resolve() for name in LINKS if (root / name).is_symlink()}
    for file in files_of(root):
        bucket.upload(file, file.relative_to(root).as_posix())
    store = CachedStore(root, bucket)
    store._write_mark(0)
    store.refresh()
    for name, file in published.items():
        store.publish(root / name, file)
    return on(stores, store)


def files_of(root: Path) -> list[Path]:
    """Return the finished files in the folders that a bucket keeps."""
    files = [file for folder in KEPT for file in (root / folder).rglob("*") if file.is_file()]
    return [file for file in files if file.suffix != ".open" and not file.name.startswith(".")]


def on(stores: Stores, store: CachedStore) -> Stores:
    home = stores.home
    warehouse = Warehouse(home, stores.warehouse.memory_limit, store)
    return replace(stores, archive=Archive(home.archive, store), warehouse=warehouse)


def reopened(stores: Stores, bucket: Bucket) -> Stores:
    """Return a home whose folder has copies, as the next command opens it."""
    store = CachedStore(stores.home.root, bucket)
    store.require_copies()
    store.refresh()
    return on(stores, store)


def elsewhere(stores: Stores, bucket: Bucket) -> Stores:
    """Turn the folder into that of another machine, which has no copies yet."""
    root = stores.home.root
    for folder in KEPT:
        shutil.rmtree(root / folder, ignore_errors=True)
    for name in (*LINKS, MARK):
        (root / name).unlink(missing_ok=True)
    stores.home.prepare()
    return reopened(stores, bucket)


def copy_of(bucket: Bucket, number: int) -> Bucket:
    """Return the prefix for a copy of all objects."""
    return replace(bucket, url=f"{bucket.url}-{number}")


def on_copy(stores: Stores, bucket: Bucket, number: int) -> Stores:
    """Copy all objects; return a copy of a home, which then is on these."""
    root = stores.home.root
    copy = copy_of(bucket, number)
    file = root / "object"
    for name in bucket.list():
        with file.open("wb", buffering=0) as target:
            bucket.download(name, target)
        copy.upload(file, name)
    file.unlink(missing_ok=True)
    store = CachedStore(root, copy)
    store._write_mark(0)
    store.refresh()
    return on(stores, store)


def downloaded(stores: Stores, folder: Path) -> Path:
    """Download all objects of a home into a folder, named as they are."""
    store = stores.warehouse.store
    assert isinstance(store, CachedStore)
    bucket = store._bucket
    for name in bucket.list():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb", buffering=0) as target:
            bucket.download(name, target)
    return folder
