"""Who is there: a lock that ends with its process, however it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.state.presence import Presence

MEMBER = """
import sys
from pathlib import Path
from pipelines.state.presence import Presence
print(Presence(Path(sys.argv[1])).name, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_is_there_until_it_ends(tmp_path: Path, end: signal.Signals) -> None:
    ours = Presence(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        alive = ours.lives(name)
        process.send_signal(end)
        process.wait(10)
    assert alive
    assert not ours.lives(name)
    assert [file.name for file in tmp_path.iterdir()] == [ours.name]
    ours.close()


def test_members_of_one_process_are_told_apart(tmp_path: Path) -> None:
    one, other = Presence(tmp_path), Presence(tmp_path)
    assert one.lives(one.name)
    assert one.lives(other.name)
    other.close()
    other.close()
    assert not one.lives(other.name)
    one.close()
    assert list(tmp_path.iterdir()) == []


def test_a_company_of_one() -> None:
    alone = Presence(None)
    assert alone.lives(alone.name)
    assert not alone.lives("somebody")
    alone.close()
