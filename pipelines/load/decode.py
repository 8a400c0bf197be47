"""Decodes raw records into Arrow arrays: exact, strict, and with one reader for all of them.

A group of records goes to Arrow's JSON reader at once. If that refuses, pieces of it do, and a
piece that is refused goes through Python: it widens the schema, and what fits no column moves to
the member `_extra` before Arrow reads the piece again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json as pj

from pipelines.core.errors import LoadFailed
from pipelines.load import arrow
from pipelines.load.arrow import Misfit
from pipelines.load.fit import Divider
from pipelines.load.records import Number, UnusableRecord, key_text, read_key, read_record
from pipelines.load.schema import Path, Schema

PIECE = 500  # records that are decoded together after their group was refused
_json = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True)
class Refused:
    """Why a record of a group cannot be loaded, and its key where it can be read."""

    reason: str
    key: str | None


@dataclass(frozen=True)
class Decoded:
    """Records of a group: a struct array, the keys (None without a key), places in the group."""

    records: pa.StructArray
    keys: pa.Array | None
    places: Sequence[int]


@dataclass
class Decoder:
    """Decodes the records of one scan. The schema grows with what they hold."""

    schema: Schema
    key: str | None
    kept: Counter[Path] = field(default_factory=Counter)
    discarded: Counter[Path] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._refresh()

    def _refresh(self) -> None:
        """Derive the types again; the schema may have grown."""
        root = self.schema.root
        self.type = arrow.read_type(root, rest=True)
        self._strict_type = arrow.read_type(root, rest=False)
        guard = arrow.decimals_guard(root)
        self._guard = None if guard is None else msgspec.json.Decoder(list[guard])  # type: ignore[valid-type]
        self._is_exact_only = not root.fields or arrow.has_odd_names(root)

    def decode(self, raws: Sequence[bytes], refused: dict[int, Refused]) -> Iterator[Decoded]:
        """Yield the records of a group; add those that cannot be loaded to `refused`, by place."""
        whole = self._try(raws, range(len(raws)))
        if whole is not None:
            yield whole
            return
        for start in range(0, len(raws), PIECE):
            places = range(start, min(start + PIECE, len(raws)))
            piece = [raws[place] for place in places]
            yield self._try(piece, places) or self._decode_exactly(piece, places, refused)

    def _try(self, raws: Sequence[bytes], places: Sequence[int]) -> Decoded | None:
        """Decode records that fit the schema as they are; None if one does not."""
        if self._is_exact_only or not _are_objects(raws):
            return None
        try:
            if self._guard is not None:
                self._guard.decode(b"[%b]" % b",".join(raws))
            records = _read_json(raws, self._strict_type)
            keys = self._keys(records)
            arrow.observe(records, self.schema.root)
        except (pa.ArrowException, msgspec.DecodeError, UnicodeDecodeError, RecursionError, Misfit):
            return None
        return Decoded(arrow.conform(records, self.type), keys, places)

    def _keys(self, records: pa.StructArray) -> pa.Array | None:
        """Return the keys of records as text. Raises Misfit if one has none."""
        if self.key is None:
            return None
        place = records.type.get_field_index(self.key)
        kind = records.type[place].type if place >= 0 else pa.null()
        keys = records.field(place) if place >= 0 else pa.nulls(len(records))
        if keys.null_count or not (
            pa.types.is_string(kind) or pa.types.is_int64(kind) or pa.types.is_decimal(kind)
        ):
            raise Misfit
        if pa.types.is_decimal(kind):
            return pa.array([key_text(Number(value)) for value in keys.to_pylist()], pa.string())
        return keys.cast(pa.string())

    def _decode_exactly(
        self, raws: Sequence[bytes], places: Sequence[int], refused: dict[int, Refused]
    ) -> Decoded:
        records: dict[int, dict[str, Any]] = {}
        for place, raw in zip(places, raws, strict=True):
            try:
                records[place] = self._read(raw)
            except UnusableRecord as error:
                key = None if self.key is None else read_key(raw, self.key)
                refused[place] = Refused(str(error), key)
        for record in records.values():
            self.schema.widen(record)
        self._refresh()
        keys = None
        if self.key is not None:
            keys = pa.array([key_text(each[self.key]) for each in records.values()], pa.string())
        return Decoded(self._rewrite(list(records.values())), keys, list(records))

    def _read(self, raw: bytes) -> dict[str, Any]:
        record = read_record(raw)
        if self.key is not None and key_text(record.get(self.key)) is None:
            raise UnusableRecord(f"Its key `{self.key}` is missing, or neither text nor a number.")
        return record

    def _rewrite(self, records: Sequence[dict[str, Any]]) -> pa.StructArray:
        """Let Arrow read what fits the schema of each record, and the rest as text."""
        divider = Divider(arrow.REST, self.schema.grows, self.kept, self.discarded)
        try:
            lines = [_json.encode(divider.divide(record, self.schema.root)) for record in records]
            found = _read_json(lines, self.type)
            arrow.observe(found, self.schema.root)
        except (pa.ArrowException, ArithmeticError, Misfit) as error:
            raise LoadFailed(
                f"Records could not be decoded without loss ({error}). Nothing of this scan is "
                "loaded; the scan file keeps every record.",
                "Report this defect of partner-sync with the scan file.",
            ) from error
        return found


def _are_objects(raws: Sequence[bytes]) -> bool:
    """Return whether every record is an object: Arrow 26.0.1 crashes the process on `null`."""
    return all(raw.startswith(b"{") for raw in raws)


def _read_json(raws: Sequence[bytes], wanted: pa.DataType) -> pa.StructArray:
    """Read records as one type: strictly, without threads, in one block."""
    if not raws:
        return pa.array([], wanted)
    text = b"\n".join(raws)
    table = pj.read_json(
        pa.py_buffer(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema(list(wanted)),
            newlines_in_values=text.count(b"\n") >= len(raws),
            unexpected_field_behavior="error",
        ),
    )
    if table.num_rows != len(raws):
        raise pa.ArrowInvalid(f"{len(raws)} records became {table.num_rows} rows")
    columns = [column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, fields=list(wanted))
