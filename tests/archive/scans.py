"""Headers, exchanges and proofs for tests of scan files."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import zstandard
from hypothesis import strategies as st

from pipelines.archive.lines import Exchange, ScanHeader, encode_body
from pipelines.archive.scan_file import OpenScan
from pipelines.core.proof import Completeness, ListTraits, Method, Ranges

START = datetime(2026, 10, 1, 23, 59, 58, 5, tzinfo=UTC)
HEADER = ScanHeader(
    scan_id="20261001T235958-00000001",
    run_id="run",
    connection="acme",
    stream="usage",
    path="/v2/usage",
    actor="actor",
    started_at=START,
    day=START.date(),
    configured_key=None,
    traits=ListTraits(key="usageId", key_decided=True, length=7),
    page_size=500,
    algorithm=1,
)

PAGINATION = b'"pagination":{"limit":2,"offset":0,"has_more":false,"next_offset":null}'


def exchange(body: bytes | None, number: int = 1, status: int | None = 200) -> Exchange:
    return Exchange(
        ask=number,
        offset=500 * (number - 1),
        limit=500,
        purpose="page",
        status=status,
        sent_at=START + timedelta(seconds=number),
        received_at=START + timedelta(seconds=number, microseconds=7),
        request_id="abc",
        headers={"content-type": "application/json", "date": 'x","body":{"a":1'},
        raw=encode_body(body),
    )


def page(*records: bytes) -> bytes:
    return b'{"data":[' + b",".join(records) + b"]," + PAGINATION + b"}"


def proof(
    used: dict[int, Ranges] | None = None, conflicting: dict[int, Ranges] | None = None
) -> Completeness:
    return Completeness(
        complete=True,
        method=Method.OVERLAPPING_PAGES,
        rows=3,
        repeated=1,
        not_seen=None,
        reason="",
        requests=2,
        started_at=START,
        ended_at=START + timedelta(minutes=1),
        used=used or {},
        conflicting=conflicting or {},
        traits=ListTraits(key="usageId", key_decided=True, length=3, stable_order=False),
    )


def written(path: Path, exchanges: list[Exchange]) -> OpenScan:
    scan = OpenScan.create(path, HEADER)
    for number, each in enumerate(exchanges, 1):
        assert scan.append(each, durable=number % 2 == 0) == number
    return scan


def decompressed(file: Path) -> bytes:
    """Decompress all frames of a file, as any tool would."""
    reader = zstandard.ZstdDecompressor().stream_reader(file.read_bytes(), read_across_frames=True)
    return reader.read()


def json_lines(file: Path) -> list[dict[str, object]]:
    """Parse every line of a file strictly."""
    text = decompressed(file).decode()
    assert text.endswith("\n")

    def refuse(constant: str) -> object:
        raise AssertionError(constant)

    return [json.loads(line, parse_constant=refuse) for line in text[:-1].split("\n")]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
BODIES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.text(max_size=20).map(str.encode),
    VALUES.map(lambda value: json.dumps(value).encode()),
    VALUES.map(lambda value: json.dumps({"a": value}, indent=1, ensure_ascii=False).encode()),
    st.sampled_from([b"", b"null", b'"a"', b" {} ", b"{}\n", b"{}\r", b"[1]", b'{"a":NaN}']),
    st.sampled_from([b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{"a":1e999,"a":1}', b'{"body":1}']),
    st.sampled_from(['{"a":"\u2028\ufeff"}'.encode(), b"\xef\xbb\xbf{}", b"<html>\x00</html>"]),
    st.sampled_from([b"[" * 2000 + b"]" * 2000, b'{"a":' * 2000 + b"1" + b"}" * 2000]),
)
EXCHANGES = st.builds(exchange, BODIES, status=st.sampled_from([None, 200, 429]))
