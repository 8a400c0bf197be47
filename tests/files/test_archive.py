"""Scan files of a home on a bucket: what machines see of each other, and what goes wrong."""

from pathlib import Path

import pytest

from pipelines.archive.archive import Archive, scan_row
from pipelines.archive.scan_file import open_path
from pipelines.core.errors import ArchiveDamaged, StorageFailed
from pipelines.files.bucket import Bucket
from pipelines.files.cached import CachedStore
from pipelines.metadata.tables import Scan
from tests.archive.scans import HEADER, exchange, proof
from tests.s3_server import KEY, SECRET, BucketServer, started_bucket

pytest_plugins = ["tests.bucket"]
ROW = scan_row(HEADER)


def archive_of(root: Path, bucket: Bucket) -> Archive:
    return Archive(root / "archive", CachedStore(root, bucket))


def sealed_row(archive: Archive) -> Scan:
    scan = archive.create(HEADER)
    scan.append(exchange(b'{"data":[]}'))
    row = scan_row(HEADER)
    row.sha256 = scan.seal(proof()).sha256
    return row


def test_a_sealed_scan_is_there_on_every_machine_and_an_open_one_is_not(
    tmp_path: Path, bucket: Bucket
) -> None:
    one = archive_of(tmp_path / "one", bucket)
    two = archive_of(tmp_path / "two", bucket)
    scan = one.create(HEADER)
    scan.append(exchange(b'{"data":[]}'))
    assert (one.has_open(ROW), two.has_open(ROW)) == (True, False)
    scan.seal(proof())
    for archive in (one, two):
        assert [each.body for each in archive.open_sealed(ROW).exchanges()] == [b'{"data":[]}']
        assert (archive.folder / ROW.file).stat().st_mode & 0o777 == 0o600
    assert (one.connections(), two.unknown_files([])) == ({"acme"}, [two.folder / ROW.file])
    one.delete([ROW])
    assert bucket.list("archive") == {}
    assert not (one.folder / ROW.file).exists()


def test_a_copy_that_is_damaged_or_lost_is_downloaded_again(tmp_path: Path, bucket: Bucket) -> None:
    archive = archive_of(tmp_path, bucket)
    row = sealed_row(archive)
    file = archive.folder / row.file
    content = file.read_bytes()
    for harm in (
        lambda: file.write_bytes(content[:-9]),
        file.unlink,
        lambda: file.write_bytes(b""),
    ):
        harm()
        assert archive.open_sealed(row).sha256 == row.sha256
        assert file.read_bytes() == content
    bucket.delete(f"archive/{row.file}")
    file.write_bytes(b"")
    with pytest.raises(ArchiveDamaged, match="is damaged"):
        archive.open_sealed(row)
    file.unlink()
    with pytest.raises(ArchiveDamaged, match="No such file"):
        archive.open_sealed(row)


def test_what_is_erased_is_erased_in_the_bucket(tmp_path: Path, bucket: Bucket) -> None:
    archive = archive_of(tmp_path / "one", bucket)
    scan = archive.create(HEADER)
    scan.append(exchange(b'{"data":[{"id":"ada"}],"pagination":{"limit":1}}'))
    row = scan_row(HEADER)
    row.sha256 = scan.seal(proof()).sha256
    archive.erase(row, lambda raw: b"ada" in raw)
    other = archive_of(tmp_path / "two", bucket)
    for each in (archive, other):
        (line,) = each.open_sealed(row).exchanges()
        assert line.records() == [b"null"]
    assert [*tmp_path.glob("*/archive/*/*/.*")] == []


@pytest.mark.usefixtures("bucket")
def test_a_scan_that_cannot_be_uploaded_stays_open_and_goes_on(tmp_path: Path) -> None:
    with started_bucket() as server:
        archive = archive_of(tmp_path, server.bucket("home", retry_seconds=0.5))
        scan = archive.create(HEADER)
        scan.append(exchange(b'{"data":[]}'))
        server.stop()
        with pytest.raises(StorageFailed, match=r"s3://homes/home cannot be used .*refused.* kept"):
            scan.seal(proof())
        assert open_path(scan.path).exists()
        assert not scan.path.exists()
        server.start()
        resumed = archive.resume(ROW)
        assert [each.body for each in resumed.exchanges()] == [b'{"data":[]}']
        resumed.seal(proof())
        assert [*server.bucket("home").list("archive")] == [f"archive/{ROW.file}"]


def test_no_message_has_a_credential(
    tmp_path: Path,
    bucket: Bucket,
    bucket_server: BucketServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{SECRET}-wrong")
    archive = archive_of(tmp_path, bucket_server.bucket(retry_seconds=1))
    texts = [repr(archive), repr(archive.store), repr(bucket), str(vars(bucket))]
    for work in (lambda: archive.create(HEADER).seal(proof()), lambda: archive.unknown_files([])):
        with pytest.raises(StorageFailed, match="SignatureDoesNotMatch") as failed:
            work()
        texts += [str(failed.value), failed.value.remedy, repr(failed.getrepr(style="native"))]
    nowhere = Bucket("s3://homes/x", "http://127.0.0.1:1", retry_seconds=0.1)
    with pytest.raises(StorageFailed, match="Connection refused") as failed:
        nowhere.read("x")
    for text in [*texts, str(failed.value)]:
        assert KEY not in text
        assert SECRET not in text
