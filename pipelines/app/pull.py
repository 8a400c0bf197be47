"""Here: what a home on a bucket has published is brought to an analyst's machine, and kept up.

That machine reads the bucket and nothing else: it needs no database and no home. Not here: how
files are published (files.cached).
"""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.config.values import BUCKET, PREFIX
from pipelines.core.errors import ConfigurationError, StorageFailed
from pipelines.core.files import held, replacing, storing, swap_symlink, write_durably
from pipelines.files import pointer
from pipelines.files.open_store import open_bucket
from pipelines.files.pointer import FOLDERS, LINKS, POINTER, Pointer, PublishedFile
from pipelines.warehouse.memory_limit import MemoryLimit
from pipelines.warehouse.version_files import Warehouse

if TYPE_CHECKING:
    from pipelines.files.bucket import Bucket

READABLE: Final = 0o444  # by everybody, and never changed
AGAIN: Final = "`partner-sync pull`"
# Between the pointer and a file that it names, another version may be published.
ATTEMPTS: Final = 5


class Pulled(msgspec.Struct, frozen=True):
    """What a folder has, and from which bucket."""

    bucket: str
    endpoint: str | None = None
    pointer: Pointer = Pointer()


def default_folder() -> Path:
    """Return the folder of the home, where files are looked for. Raises ConfigurationError."""
    return Home.from_environment().root


def pulled_files() -> Warehouse | None:
    """Return the files in the folder of the home if they were pulled; None: it is a home.

    They are only read, and need neither connections nor a database. Raises ConfigurationError, and
    StorageFailed where the symlink is gone.
    """
    home = Home.from_environment()
    # Whatever it holds: what is published here is what the symlinks name.
    if not os.path.lexists(home.pulled_file):
        return None
    warehouse = Warehouse(home, MemoryLimit.of(load_settings(home).memory_limit))
    if warehouse.published() is None:
        raise StorageFailed(
            f"{home.link} does not exist, although files were pulled to this folder. No rows can "
            "be read.",
            f"Run {AGAIN}.",
        )
    return warehouse


def pull(
    folder: Path, url: str | None = None, endpoint: str | None = None
) -> list[dict[str, object]]:
    """Bring the published version and books to a folder; return a row for each file.

    Without `url`, it is that of the last time, or of the environment. The symlinks move when all
    files are there and have the digests that were published with them. Then files that are not in
    the bucket any more are deleted. Raises ConfigurationError, StorageFailed, NewerFormat.
    """
    folder = folder.absolute()
    _asked(_read_state(folder, url, endpoint), url, endpoint)  # raises, before there is a folder
    with storing(folder, AGAIN):
        folder.mkdir(parents=True, exist_ok=True)
    state_file = Home(folder).pulled_file
    with held(folder / f".{state_file.name}.lock"):
        before = _read_state(folder, url, endpoint)
        asked = _asked(before, url, endpoint)
        if before is None:
            _require_new(folder)
        elif before.bucket != asked.bucket:
            raise ConfigurationError(
                f"{folder} has files of {before.bucket}, not of {asked.bucket}. Nothing was "
                "changed.",
                "Name another folder.",
            )
        bucket = open_bucket(asked.bucket, asked.endpoint)
        with storing(folder, AGAIN):
            now, new_files = _download(folder, bucket, before.pointer if before else Pointer())
            _follow(folder, now)
            state = Pulled(asked.bucket, asked.endpoint, now)
            write_durably(state_file, msgspec.json.encode(state))
            _delete_gone(folder, bucket)
    return [
        {
            "file": str(folder / link),
            "content": Path(target.file).stem,
            "published_at": target.since,
            "bytes": target.bytes,
            "downloaded": target.file in new_files,
        }
        for link, target in sorted(now.published.items(), reverse=True)
    ]


def _read_state(folder: Path, url: str | None, endpoint: str | None) -> Pulled | None:
    """Return what was pulled to a folder; None: nothing was.

    Of a state that cannot be read, `url` says the bucket; nothing is known of the files then.
    """
    file = Home(folder).pulled_file
    try:
        return msgspec.json.decode(file.read_bytes(), type=Pulled)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        if url is not None:
            return Pulled(url, endpoint)
        raise StorageFailed(
            f"{file} cannot be read: {error}. Nothing was changed.",
            f"Run `partner-sync pull {folder}` with --from and the bucket of these files. It "
            "compares them again.",
        ) from None


def _asked(before: Pulled | None, url: str | None, endpoint: str | None) -> Pulled:
    """Return the bucket that is asked for. Raises ConfigurationError."""
    url = url or (before.bucket if before else os.environ.get(f"{PREFIX}FILES"))
    endpoint = endpoint or (
        before.endpoint if before else os.environ.get(f"{PREFIX}FILES_ENDPOINT")
    )
    # A wrong value is not quoted: it may have credentials.
    if url is None or not re.fullmatch(BUCKET, url):
        raise ConfigurationError(
            "It is not said which bucket to pull from, or it is no bucket. Nothing was changed.",
            "Add --from s3://bucket/prefix. Credentials are those of the environment.",
        )
    return Pulled(url, endpoint)


def _require_new(folder: Path) -> None:
    """Raise ConfigurationError for a folder with files that were not pulled."""
    names = [*FOLDERS, *LINKS, "config"]
    own = [name for name in names if os.path.lexists(folder / name)]
    if own:
        raise ConfigurationError(
            f"{folder} has files that were not pulled: {', '.join(own)}. Nothing was changed.",
            "Name a folder that is new or empty.",
        )


def _download(folder: Path, bucket: "Bucket", before: Pointer) -> tuple[Pointer, set[str]]:
    """Download what is published and not here; return the pointer, and the new files by name."""
    for _attempt in range(ATTEMPTS):
        content = bucket.read(POINTER)
        if content is None:
            raise ConfigurationError(
                f"Nothing is published in {bucket.url} yet. Nothing was changed.",
                "Ask the people who run `partner-sync sync`.",
            )
        now = pointer.decode(content.data, bucket.url)
        known = {target.file: target.sha256 for target in before.published.values()}
        new = [each for each in now.published.values() if not _is_here(folder, each, known)]
        try:
            for target in new:
                _download_one(folder, bucket, target)
        except FileNotFoundError:
            continue
        return now, {target.file for target in new}
    raise StorageFailed(
        f"The files that {bucket.url}/{POINTER} names are not in the bucket. The files here stay "
        "as they are.",
        "Ask the people who run partner-sync to run `partner-sync verify`.",
    )


def _is_here(folder: Path, target: PublishedFile, known: Mapping[str, str]) -> bool:
    """Return whether a file is here with the published content. `known`: digests of before."""
    file = folder / target.file
    if not file.is_file() or file.stat().st_size != target.bytes:
        return False
    # A file has its name only after its digest was compared. Another one may have had the name.
    if known.get(target.file) == target.sha256:
        return True
    with file.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest() == target.sha256


def _download_one(folder: Path, bucket: "Bucket", target: PublishedFile) -> None:
    file = folder / target.file
    with storing(file.parent, AGAIN):
        file.parent.mkdir(exist_ok=True)
    with replacing(file, READABLE) as part:
        bucket.download(target.file, part)
        part.seek(0)
        if hashlib.file_digest(part, "sha256").hexdigest() != target.sha256:
            raise StorageFailed(
                f"{target.file} of {bucket.url} is not what was published: it has another digest. "
                "The files here stay as they are.",
                f"Run {AGAIN} again. If it fails again, ask the people who run partner-sync.",
            )


def _follow(folder: Path, now: Pointer) -> None:
    for name in LINKS:
        target = now.published.get(name)
        if target is None:
            (folder / name).unlink(missing_ok=True)
        else:
            swap_symlink(folder / name, target.file)


def _delete_gone(folder: Path, bucket: "Bucket") -> None:
    """Delete files that the bucket does not have any more; who has one open keeps it."""
    for name in FOLDERS:
        kept = bucket.list(name)
        for file in (folder / name).glob("v*.duckdb"):
            if f"{name}/{file.name}" not in kept:
                file.unlink(missing_ok=True)
