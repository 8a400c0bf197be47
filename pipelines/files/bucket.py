"""Here: objects of one bucket (S3), by their names below a prefix; what its errors mean.

Not here: which objects there are, and their copies on this machine (cached). Credentials are those
that the environment names; no message has one.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from pipelines.core.errors import StorageFailed
from pipelines.core.text import printable
from pipelines.files.store import Kept

if TYPE_CHECKING:
    from obstore import PutMode  # these exist for type checkers only
    from obstore.store import BackoffConfig, S3Config

# Of an upload in parts: so many are in memory at once, and S3 takes 10,000 of them.
PART_BYTES: Final = 16 * 2**20
PARTS_AT_ONCE: Final = 4
LISTED_AT_ONCE: Final = 1000
# A request that fails is sent again for so long: a bucket may be restarted meanwhile.
RETRY_SECONDS: Final = 90.0
BACKOFF: "Final[BackoffConfig]" = {
    "init_backoff": timedelta(seconds=0.1),
    "max_backoff": timedelta(seconds=5),
    "base": 2,
}
NO_BUCKET: Final = "NoSuchBucket"
REMEDY: Final = (
    "Check the bucket, its credentials and the network. Then run the same command again; "
    "`partner-sync sync` resumes."
)
# Of causes that are not of the bucket.
REMEDIES: Final = {
    "RequestTimeTooSkewed": "Correct the clock of this machine. Then run the same command again; "
    "`partner-sync sync` resumes."
}
# What the library prints of an error is for its developers. These are its cause, the gravest last.
CAUSES: Final = (
    re.compile(r"status code: (\d+[\w ]*)"),
    re.compile(r'message: "([^"]+)"'),
    re.compile(r"<Code>(\w+)</Code>"),
)


@dataclass(frozen=True)
class Content:
    """A small object: its bytes, and the tag (ETag) of this state of it."""

    data: bytes
    tag: str


@dataclass(frozen=True)
class Bucket:
    """The objects below a URL such as s3://bucket/prefix. `endpoint`: of a service other than AWS.

    Every method raises StorageFailed for what the bucket refuses, or does not answer in time.
    """

    url: str
    endpoint: str | None = None
    retry_seconds: float = RETRY_SECONDS

    def read(self, name: str) -> Content | None:
        """Return a small object; None if there is none."""
        with suppress(FileNotFoundError), self._explained(name):
            answer = obstore.get(self._store, name)
            return Content(bytes(answer.bytes()), answer.meta["e_tag"] or "")
        return None

    def write(self, name: str, data: bytes, before: Content | None) -> Content | None:
        """Write a small object if it still is as it was before (None: not there).

        Returns None if it is not. `data` has to differ from whatever others write.
        """
        mode: PutMode = "create"
        if before is not None:
            mode = {"e_tag": before.tag}
        with suppress(AlreadyExistsError, PreconditionError), self._explained(name):
            answer = obstore.put(self._store, name, data, mode=mode)
            return Content(data, answer["e_tag"] or "")
        # A request whose answer was lost is sent again, and then meets what it has written itself.
        now = self.read(name)
        if now is None or now.data != data:
            return None
        return now

    def upload(self, file: Path | bytes, name: str) -> None:
        """Write a file of any size to an object, which nobody sees in part. Raises OSError, too."""
        with self._explained(name):
            obstore.put(
                self._store, name, file, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )

    def download(self, name: str, file: FileIO) -> None:
        """Write an object of any size to an open file.

        Raises FileNotFoundError if there is none, OSError for what the disk refuses.
        """
        with self._explained(name):
            for part in obstore.get(self._store, name).stream(min_chunk_size=PART_BYTES):
                file.write(part)

    def list(self, folder: str = "") -> dict[str, Kept]:
        """Return the objects below a folder (empty: all) by name."""
        found = dict[str, Kept]()
        with self._explained(folder or "list"):
            for objects in obstore.list(self._store, folder, chunk_size=LISTED_AT_ONCE):
                for each in objects:
                    found[each["path"]] = Kept(each["size"], each["last_modified"])
        return found

    def delete(self, name: str) -> None:
        """Delete an object, if it is there."""
        with suppress(FileNotFoundError), self._explained(name):
            obstore.delete(self._store, name)

    @cached_property
    def _store(self) -> S3Store:
        # Without an endpoint of its own, the environment may name one, as for every client of S3.
        options: S3Config = {}
        if self.endpoint is not None:
            options["endpoint"] = self.endpoint
        return S3Store.from_url(
            self.url,
            config=options,
            client_options={
                "allow_http": True,  # where the endpoint says so
                "connect_timeout": "10s",
                # Between two parts of an answer, and until it begins. A file may take hours.
                "read_timeout": "60s",
                "timeout": "12h",
            },
            retry_config={
                "max_retries": 1000,
                "retry_timeout": timedelta(seconds=self.retry_seconds),
                "backoff": BACKOFF,
            },
        )

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except (AlreadyExistsError, PreconditionError):
            raise
        except (BaseError, FileNotFoundError) as error:
            # No object is an answer; no bucket is none.
            if isinstance(error, FileNotFoundError) and NO_BUCKET not in str(error):
                raise
            cause = _cause(error)
            raise StorageFailed(
                f"The bucket {self.url} cannot be used ({name}): {cause}. What is stored "
                "already is kept; analysts still see the published version.",
                REMEDIES.get(cause, REMEDY),
            ) from None


def _cause(error: Exception) -> str:
    text = str(error)
    cause = text.partition("\n")[0].rpartition(" - ")[2]
    for pattern in CAUSES:
        if found := pattern.search(text):
            cause = found[1]
    return printable(cause, 200).rstrip(".")
