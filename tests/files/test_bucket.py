"""What a bucket does for several writers of one object (a real S3 server)."""

from concurrent.futures import ThreadPoolExecutor

from pipelines.files.bucket import Bucket

pytest_plugins = ["tests.bucket"]


def test_one_of_many_writers_wins_and_the_others_are_refused(bucket: Bucket) -> None:
    first = bucket.write("pointer", b"0", None)
    assert first
    assert bucket.write("pointer", b"1", None) is None
    with ThreadPoolExecutor(8) as pool:
        tried = [pool.submit(bucket.write, "pointer", b"by %d" % n, first) for n in range(8)]
        written = [each for each in (call.result() for call in tried) if each]
    assert [bucket.read("pointer")] == written
    assert bucket.write("pointer", b"later", first) is None
    assert bucket.write("pointer", b"later", written[0]) == bucket.read("pointer")
    # What was lost on the way back is not refused: the object has it.
    assert bucket.write("pointer", b"later", first) == bucket.read("pointer")
    assert bucket.read("nothing") is None
    assert bucket.write("nothing", b"x", first) is None
