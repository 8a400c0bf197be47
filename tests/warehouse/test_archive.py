"""The archive keeps bodies as received, once, whole, and notices when one was changed."""

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zstandard

from pipelines.errors import LandingFailed, StorageFailed
from pipelines.settings import Home
from pipelines.warehouse.archive import opened
from tests import archives
from tests.warehouse.conftest import Warehouse

BODY = b'{"data":[{"id":1,"amount":12345678901234567.89}],"pagination":{}}'


def test_a_body_comes_back_byte_for_byte(warehouse: Warehouse) -> None:
    digest = warehouse.archive.put(BODY)
    assert warehouse.archive.body(digest) == BODY


def test_equal_bodies_are_one_file(warehouse: Warehouse) -> None:
    assert warehouse.archive.put(BODY) == warehouse.archive.put(BODY)
    assert len(warehouse.archive.pages()) == 1
    for file in warehouse.home.archive.rglob("*.zst"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda _whole: zstandard.ZstdCompressor().compress(b"{}"),
            "was changed since it was read",
        ),
        (lambda whole: whole[:-9], "cannot be read"),
        (lambda _whole: b"", "cannot be read"),
    ],
)
def test_a_changed_page_is_refused(
    warehouse: Warehouse, damage: Callable[[bytes], bytes], words: str
) -> None:
    digest = warehouse.archive.put(BODY)
    (file,) = archives.pages(warehouse.archive)
    archives.changed(warehouse.archive, file, damage)
    with pytest.raises(LandingFailed, match=words):
        warehouse.archive.body(digest)


def test_a_missing_page_is_named(warehouse: Warehouse) -> None:
    with pytest.raises(LandingFailed, match=r"0{64}"):
        warehouse.archive.body("0" * 64)


def test_a_manifest_is_written_once_and_reads_back(warehouse: Warehouse) -> None:
    manifest = warehouse.manifest('[{"id": 1}]', "[]")
    warehouse.archive.write(manifest)
    assert manifest.file == "default/things/2026-11-21.001.json"
    assert manifest.rows == 1
    assert warehouse.archive.read(manifest.file) == manifest
    warehouse.archive.write(manifest)  # as after an answer that was lost
    with pytest.raises(FileExistsError):
        warehouse.archive.write(msgspec.structs.replace(manifest, run="another"))
    assert warehouse.archive.read(manifest.file) == manifest


def test_a_lost_manifest_is_named(warehouse: Warehouse) -> None:
    with pytest.raises(LandingFailed, match=r"default/things/2026-01-01\.001\.json"):
        warehouse.archive.read("default/things/2026-01-01.001.json")


def test_a_disk_that_takes_nothing_is_said_in_words(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.prepare()
    (home.archive / "pages").write_text("no folder")
    with pytest.raises(StorageFailed, match=r"cannot be written: .*run sync again: it goes on"):
        opened(home).put(b"{}")
