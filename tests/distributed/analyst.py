"""An analyst who asks all through a night, the warehouse attached once; what was seen.

Here: asking beside the night, in a thread. Not here: attaching (attached), what is expected of the
answers (expectations).
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event

import duckdb

from tests.distributed.attached import attach

PAUSE = 3.0  # seconds between two questions, each of which takes a processor half a second
# A version is whole: each of its folds has its rows, and its reports are of these folds.
WHOLE = """
SELECT (SELECT count(*) FROM {0}.current.usage) = (SELECT sum(rows) FROM {0}.meta.freshness
    WHERE stream = 'usage'), (SELECT count(*) FROM {0}.reports.sync_health)
    = (SELECT count(*) FROM {0}.meta.freshness), (SELECT any_value(version) FROM {0}.meta.freshness)
"""


@dataclass
class Seen:
    """The answers, and the words of what was refused: `early` before there was an answer."""

    answers: list[tuple[object, ...]] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@contextmanager
def asking(home: Path, environment: Mapping[str, str], pause: float = PAUSE) -> Iterator[Seen]:
    """Let an analyst ask the same again and again until the block ends."""
    seen, over = Seen(), Event()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_ask, home, environment, seen, partial(over.wait, pause))
        try:
            yield seen
        finally:
            over.set()
        asked.result()


def _ask(home: Path, environment: Mapping[str, str], seen: Seen, ended: Callable[[], bool]) -> None:
    """Begin again after a refusal; before the first publication there is nothing to attach."""
    while not ended():
        with duckdb.connect() as database, _noted(seen):
            query = WHOLE.format(attach(database, home, environment))
            while not ended():
                seen.answers += database.execute(query).fetchall()


@contextmanager
def _noted(seen: Seen) -> Iterator[None]:
    """Note the words of a refusal, which ends the block."""
    try:
        yield
    except duckdb.Error as error:
        (seen.refused if seen.answers else seen.early).append(str(error))
