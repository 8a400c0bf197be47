"""The work of tests/versions/test_kill.py, killed in homes whose files are in a bucket.

`python -m tests.files.test_kill HOME WORK URL ENDPOINT` makes HOME-1, HOME-2, … as that file does.
Each copy has its own objects; each change of one is a step, too.
"""

import os
import sys
from itertools import cycle
from pathlib import Path

import pytest

from pipelines.files.bucket import Bucket
from tests.on_bucket import copy_of, elsewhere, moved, on_copy, reopened
from tests.versions.homes import Stores, home_of
from tests.versions.named import publish_names
from tests.versions.test_kill import WORK, check_killed, kill_work, killed_homes

pytest_plugins = ["tests.bucket"]

# What changes objects, and what the next command finds here.
STEPS = [(Bucket, "upload"), (Bucket, "write"), (Bucket, "delete"), (os, "rename")]
named = home_of(publish_names)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_what_is_killed_is_done_by_the_next_command_on_the_same_machine_and_on_another(
    name: str, bucket: Bucket, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    stores: Stores = request.getfixturevalue(WORK[name].home)
    WORK[name].prepare(stores)
    stores = moved(stores, bucket)
    seen = [stores.keys()]
    # In turn, the next command is on the same machine, and on one without any copy.
    machines = cycle([reopened, elsewhere])
    arguments = ("files", name, bucket.url, str(bucket.endpoint))
    homes = (
        open_next(killed, copy_of(bucket, k))
        for open_next, (k, killed) in zip(
            machines, killed_homes(stores, capsys, arguments), strict=False
        )
    )
    check_killed(WORK[name], seen, homes)


if __name__ == "__main__":
    _program, folder, name, url, endpoint = sys.argv
    objects = Bucket(url, endpoint)

    def open_copy(copy: Path, number: int) -> Stores:
        return on_copy(Stores.open(copy), objects, number)

    sys.stdout.write(str(kill_work(Path(folder), name, open_copy, STEPS)))
