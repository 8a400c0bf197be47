"""What is in a scan file: its whole frames, the exchanges in them, and where it is damaged."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pipelines.archive import frames, lines
from pipelines.archive.lines import Exchange, ScanHeader
from pipelines.core.errors import ArchiveDamaged

OPEN_SUFFIX = ".open"
TOO_MANY_REQUESTS = 429


def open_path(path: Path) -> Path:
    """Return the name that a scan file has while it is read."""
    return path.with_name(path.name + OPEN_SUFFIX)


@dataclass
class Content:
    """What is whole in a file that is being written, and whether a seal follows it."""

    header: ScanHeader
    starts: list[int]  # of the exchanges' frames
    end: int
    rate_limited: int = 0
    is_sealed: bool = False


def read_open_file(path: Path) -> Content:
    """Read a file that was not sealed, and check it. Raises ArchiveDamaged."""
    file = open_path(path)
    found = frames.whole_frames(file)
    first = next(found, None)
    if first is None:
        raise damaged(file, "its header is not whole")
    try:
        content = Content(lines.decode_header(first.line), [], first.end)
    except ValueError as error:
        raise damaged(file, str(error)) from error
    for frame in found:
        content.is_sealed = frame.line.startswith(lines.SEAL_START)
        if content.is_sealed:
            break
        number = len(content.starts) + 1
        try:
            exchange = lines.decode_exchange(frame.line, number)
        except ValueError as error:
            raise damaged(file, _at(number, error, frame.start)) from error
        content.starts.append(frame.start)
        content.end = frame.end
        content.rate_limited += exchange.status == TOO_MANY_REQUESTS
    return content


def cut(path: Path, content: Content) -> None:
    """Cut off a broken last frame, or a seal. Raises ArchiveDamaged where whole frames follow."""
    file = open_path(path)
    if not content.is_sealed and frames.any_frame_after(file, content.end):
        number = len(content.starts) + 1
        raise damaged(file, f"page {number} (byte {content.end}): broken, but pages follow it")
    os.truncate(file, content.end)


def read_exchanges(
    path: Path, file: Path, bounds: Sequence[int], first: int = 1
) -> Iterator[tuple[int, Exchange]]:
    """Read the exchanges between bounds; the first of them has the number `first`.

    `file` is read, `path` is named in errors. Raises ArchiveDamaged.
    """
    try:
        with file.open("rb") as source:
            for number, (start, end) in enumerate(pairwise(bounds), first):
                source.seek(start)
                try:
                    line = frames.decompress(source.read(end - start))
                    exchange = lines.decode_exchange(line, number)
                except ValueError as error:
                    raise damaged(path, _at(number, error, start)) from error
                yield number, exchange
    except OSError as error:
        raise damaged(path, f"it cannot be read ({error.strerror})") from error


def _at(number: int, error: ValueError, start: int) -> str:
    return f"page {number} (byte {start}): {error}"


def damaged(path: Path, reason: str) -> ArchiveDamaged:
    """Return the error of a scan file that is not what was written."""
    return ArchiveDamaged(
        f"Scan file {path} is damaged: {reason}. It is not loaded; published versions are "
        "untouched.",
        "Restore the file from a backup, or run `partner-sync sync` to read the list again.",
    )
