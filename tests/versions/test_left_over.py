"""What killed processes left is named and deleted; what living ones write is not."""

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from pipelines.app.maintenance import verify_files
from pipelines.app.nightly import build_with_books
from pipelines.metadata.locks import hold_lock
from pipelines.versions.change import change_versions
from tests.versions.homes import Reading, Stores, read, usage

# Stops in the middle of a write, as one does for which the disk is slow.
SLOW_WRITER = """
import os, sys, time
from pathlib import Path
from pipelines.core import files
def wait(_descriptor):
    print("written", flush=True)
    time.sleep(60)
os.fsync = wait
files.write_durably(Path(sys.argv[1]), b"half")
"""
# What a kill leaves of a build, a copy, a close, an erasure, an export, and the symlink.
UNDER_BUILD = (
    "versions/.v00000009.building",
    "versions/.v00000009.building.spill/",
    "versions/.v00000009.building.dense",
    "closes/2026-09/.001.part/",
    "archive/acme/usage/.x.jsonl.zst.part",
    "archive/acme/usage/.x.jsonl.zst.part.open",
    ".warehouse.duckdb.part",
)
OTHERS = (
    "archive/acme/usage/.x.jsonl.zst.open.part",
    "versions/.v-copy-x",
    "reports/.index.html.part",
    "config/.mapping.toml.part",
    "locks/0123456789abcdef.process",
    "exports/.v00000001-csv.part/",
    "exports/.v00000001-csv.before/",
)


def leave(stores: Stores) -> set[Path]:
    """Make temporary files and folders as processes do that are killed."""
    made = set()
    for name in (*UNDER_BUILD, *OTHERS):
        path = stores.home.root / name
        folder = path if name.endswith("/") else path.parent
        folder.mkdir(parents=True, exist_ok=True)
        (path / "half" if name.endswith("/") else path).write_bytes(b"half")
        made.add(path)
    return made


def named(stores: Stores) -> set[Path]:
    """Return the files that `verify` says were left."""
    damaged = verify_files(stores)["damaged"]
    assert all("was left by a process that was killed" in each["message"] for each in damaged)
    return {Path(each["message"].split(" was left", 1)[0]) for each in damaged}


@pytest.fixture
def writer(published: Stores) -> Iterator[Popen[bytes]]:
    """A process that is in the middle of writing a report."""
    file = published.home.reports / "v00000001.html"
    file.parent.mkdir()
    command = [sys.executable, "-c", SLOW_WRITER, str(file)]
    with Popen(command, stdout=PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"written\n"
        yield process
        process.kill()


def test_what_was_left_is_named_until_the_next_build(published: Stores) -> None:
    left = leave(published)
    assert named(published) == left
    with hold_lock(published.metadata.locks, "build"):  # somebody may be writing the others
        assert named(published) == {published.home.root / name for name in OTHERS} - {
            path for path in left if "archive" in path.parts
        }
    with hold_lock(published.metadata.locks, "export"):
        assert not build_with_books(published).is_new
        assert {path.parent.name for path in left if path.exists()} == {"exports"}
    build_with_books(published)
    assert named(published) == set()
    assert not any(path.exists() for path in left)
    assert published.keys() == published.keys(1)


def test_what_a_living_process_writes_stays_until_it_is_killed(
    published: Stores, writer: Popen[bytes]
) -> None:
    part = published.home.reports / ".v00000001.html.part"
    assert named(published) == set()
    build_with_books(published)
    assert part.read_bytes() == b"half"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert named(published) == {part}
    build_with_books(published)
    assert not part.exists()


@pytest.mark.long
def test_a_version_that_was_lost_is_named_until_older_ones_are_not_kept(published: Stores) -> None:
    few = published.changed(keep_versions=2)
    for last in (11, 12):
        read(few, Reading(usage(*range(1, last + 1))))
        build_with_books(few)
    first = few.warehouse.version(1)
    second, _third = few.warehouse.versions()
    assert verify_files(few)["damaged"] == []  # the first was deleted as it should be
    assert not first.path.exists()
    backup = shutil.copy(second.path, few.home.root / "backup")
    second.path.unlink()
    for _command in range(2):
        (problem,) = verify_files(few)["damaged"]
        assert f"Version 2 has no file: {second.path}" in problem["message"]
        assert "Restore the file from a backup" in problem["remedy"]
        with change_versions(few):
            pass
    shutil.copy(backup, second.path)
    with change_versions(few):
        pass
    assert verify_files(few)["damaged"] == []
    second.path.unlink()
    for last in (13, 14):
        read(few, Reading(usage(*range(1, last + 1))))
        build_with_books(few)
    assert verify_files(few)["damaged"] == []
