"""Damaged files: in every command a message that names the file and what cures it, no traceback."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from pipelines.cli.main import program
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from tests.cli.commands import ARGUMENTS, ON_A_HOME
from tests.cli.conftest import Cli
from tests.homes import rows
from tests.reconcile.books import publish
from tests.reconcile.months import USAGE, publish_closed
from tests.versions.homes import Stores, goes_on_from

Damage = Callable[[Path], object]
Find = Callable[[Home], Path]
BLOCK = 262_144  # bytes of a block of DuckDB
# Commands that do not need the published version. Every other one, a new one too, must name it.
WITHOUT_VERSION = {
    "configuration accept",
    *("approve", "check", "connections", "connections accept", "connections unblock", "discover"),
    *("notify test", "own check", "plan", "runs", "versions list"),
}
CURES = {"versions rebuild", "versions rollback"}
WORKS = ARGUMENTS | {
    "breaks assign": "--severity=high --owner=bob --reason=why --yes",
    "breaks decide": "decided.csv --yes",
    "breaks reopen": "--severity=high --reason=why --yes",
    "breaks resolve": "--severity=high --reason=why --yes",
    "close month": "2026-10 --preparer=ann --reviewer=bob",
    "erase": "late --reason=why --yes --force",
    "export": "csv",
    "prune": "--days=1 --force",
    "statement": "first 2026-09",
    "trace month": "first 2026-09",
    "trace record": "acme usage u",
}


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def overwrite(file: Path) -> None:
    """Overwrite a part of each block."""
    content = bytearray(file.read_bytes())
    for start in range(3 * 4096 if len(content) > BLOCK else 0, len(content), BLOCK):
        content[start + 64 : start + 128] = b"\xa5" * 64
    file.write_bytes(content)


def overwrite_one(file: Path) -> None:
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4096] = b"\xa5" * len(content[middle : middle + 4096])
    file.write_bytes(content)


def replace_by_text(file: Path) -> None:
    file.write_text("An e-mail that somebody saved under this name.\n" * 1000)


def replace_by_folder(file: Path) -> None:
    file.unlink()
    (file / "folder").mkdir(parents=True)


def forbid(file: Path) -> None:
    file.chmod(0)


DAMAGES: list[Damage] = [cut, empty, overwrite, replace_by_text, replace_by_folder]
DAMAGES += [forbid] if os.geteuid() else []  # root may read everything


def marked(*values: Damage | Find) -> Any:
    """Return a case: one kind of damage runs in `make test-all`, the others in `make test-slow`."""
    # Of a copy, the manifest is enough; scan files are in tests/versions/test_disk, too.
    is_slow = cut not in values or not {copied_rows, scan, mapping}.isdisjoint(values)
    mark = pytest.mark.slow if is_slow else pytest.mark.long
    return pytest.param(*values, marks=mark, id="-".join(each.__name__ for each in values))


def published(home: Home) -> Path:
    return home.link.resolve()


def metadata(home: Home) -> Path:
    return home.metadata_file


def scan(home: Home) -> Path:
    return max(home.archive.glob("*/usage/*.zst"))


def mapping(home: Home) -> Path:
    return home.mapping_file


def manifest(home: Home) -> Path:
    return next(home.closes.glob("*/*/manifest.json"))


def copied_rows(home: Home) -> Path:
    return next(home.closes.glob("*/*/used.parquet"))


def damage(home: Home, find: Find, how: Damage) -> Path:
    file = find(home)
    file.chmod(0o600)
    how(file)
    return file


def run(home: Home, command: str) -> Result:
    """Run a command, and require that it ends with a code of its own and no traceback."""
    environment = {"PARTNER_SYNC_HOME": str(home.root), "TERM": "dumb", "COLUMNS": "300"}
    arguments = f"{command} {WORKS.get(command, '')}".split()
    result = CliRunner().invoke(program.root, arguments, env=environment)
    assert isinstance(result.exception, SystemExit | None), (command, result.exc_info)
    assert result.exit_code in set(ExitCode), command
    assert "Traceback" not in result.output
    return result


def assert_named(result: Result, file: Path, cure: str) -> None:
    """Require a message that names a file, and a command or step that cures it."""
    text = " ".join(result.output.split())
    assert str(file) in text, result.output
    assert re.search(cure, text), result.output


REBUILD = "`partner-sync versions rebuild`"


@pytest.mark.long
def test_a_version_that_was_cut_is_named_by_commands_that_read_it(synced: Cli) -> None:
    file = damage(synced.home, published, cut)
    for command in ("breaks", "status", "report", "export", "versions build"):
        result = run(synced.home, command)
        assert_named(result, file, REBUILD)
        assert result.exit_code != ExitCode.DONE


@goes_on_from(publish_closed)
def publish_three(stores: Stores) -> None:
    publish(stores, usage=[*USAGE, {**USAGE[0], "id": "x"}])


@pytest.fixture
def home(open_home: Callable[[Callable[[Stores], object]], Stores]) -> Home:
    """A home with three versions and a closed month, whose service cannot be reached."""
    stores = open_home(publish_three)
    stores.metadata.close()
    return stores.home


def copies(home: Home, commands: set[str]) -> Iterator[tuple[str, Home]]:
    """Yield a copy of a home for each command, by the command; it goes after that."""
    for each in sorted(commands):
        copy = shutil.copytree(home.root, home.root.with_name(each), symlinks=True)
        yield each, Home(Path(copy))
        shutil.rmtree(copy)


SERVICE = {"check", "connections accept", "discover", "init", "sync"}  # wait for the service


@pytest.mark.parametrize("how", [marked(each) for each in (*DAMAGES, overwrite_one)])
def test_a_damaged_version_is_a_message_in_every_command(how: Damage, home: Home) -> None:
    for command, copy in copies(home, ON_A_HOME - SERVICE - CURES):
        file = damage(copy, published, how)
        result = run(copy, command)
        is_met = how is not overwrite_one or "is damaged" in result.output  # if it reads that block
        if command not in WITHOUT_VERSION and is_met:
            assert_named(result, file, REBUILD)
            assert result.exit_code != ExitCode.DONE
    for command, copy in copies(home, CURES):
        damage(copy, published, how)
        assert run(copy, command).exit_code != ExitCode.NOTHING_PUBLISHED
        assert rows(copy, "FROM current.usage")


@pytest.mark.parametrize("how", [marked(each) for each in DAMAGES if each is not empty])
def test_a_damaged_metadata_database_is_a_message_in_every_command(how: Damage, home: Home) -> None:
    """Of an empty one, which becomes a new one, tests/versions/test_prune.py has what follows."""
    for command, copy in copies(home, ON_A_HOME - SERVICE):
        file = damage(copy, metadata, how)
        result = run(copy, command)
        if how is not overwrite:
            assert_named(result, file, "restore the file from a backup")
            assert result.exit_code == ExitCode.NOTHING_PUBLISHED


# Which commands must name a file, and what cures it.
NEEDS: dict[Find, tuple[set[str], str]] = {
    scan: ({"verify", "versions rebuild"}, "Restore"),
    manifest: ({"verify", "close list"}, "Restore"),
    copied_rows: ({"verify", "close list"}, "Restore"),
    mapping: ({"mapping propose"}, "partner-sync check|run the command again"),
}
PAIRS = [
    marked(find, how)
    for find in NEEDS
    for how in DAMAGES
    if (find, how) != (mapping, empty)  # nothing is mapped then
]


@pytest.mark.parametrize(("find", "how"), PAIRS)
def test_what_needs_a_damaged_file_names_it(find: Find, how: Damage, home: Home) -> None:
    commands = ON_A_HOME - SERVICE - WITHOUT_VERSION
    needs, cure = NEEDS[find]
    for command, copy in copies(home, commands):
        file = damage(copy, find, how)
        result = run(copy, command)
        if command in needs:
            assert_named(result, file, cure)
            assert result.exit_code != ExitCode.DONE
