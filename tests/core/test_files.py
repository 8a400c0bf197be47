import stat
from pathlib import Path

import pytest

from pipelines.core.errors import StorageFailed
from pipelines.core.files import private_folder, swap_symlink, write_durably


def test_a_symlink_swap_leaves_open_files_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
    link = tmp_path / "link"
    swap_symlink(link, "one")
    with link.open() as opened:
        swap_symlink(link, "two")
        assert (opened.read(), link.read_text()) == ("one", "two")


def test_written_files_are_private_and_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_durably(file, b"one")
    write_durably(file, b"two")
    assert file.read_bytes() == b"two"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="file/folder"):
        private_folder(tmp_path / "file" / "folder")
