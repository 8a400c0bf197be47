"""A sync whose limiter writes down two moments of each request: `python -m ... FILE`.

A line of FILE is a word and monotonic seconds: `leaves` when a request has passed its last look,
`heard` when the headers of a 429 are read, with the seconds that they ask for. All lines are in
the order in which this process did it, so that they prove what it did, whatever the machine does.
"""

import sys
import time
from pathlib import Path

from pipelines.app import connect
from pipelines.app.nightly import sync
from pipelines.app.results import LoggedProgress, ReadRequest
from pipelines.app.session import open_session
from pipelines.rate_limit.limiter import RateLimiter

LINES: list[str] = []


class Watched(RateLimiter):
    """The limiter as it is; it writes down what it decides."""

    async def check_leaving(self) -> None:
        await super().check_leaving()
        LINES.append(f"leaves {time.monotonic()} 0")

    def note_refusal(self, seconds: float) -> None:
        LINES.append(f"heard {time.monotonic()} {seconds}")
        super().note_refusal(seconds)


def main() -> None:
    vars(connect)["RateLimiter"] = Watched
    file, *names = sys.argv[1:]
    with open_session() as session:
        result = sync(session, [ReadRequest(name) for name in names], LoggedProgress())
    Path(file).write_text("\n".join(LINES), encoding="utf-8")
    sys.exit(result.exit_code)


if __name__ == "__main__":
    main()
