"""Here: column `_extra`: what a row has that fits no column, as a JSON object in text.

Not here: which values go there (decode, store), and which come back (reread, maps).
"""

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from pipelines.load.paths import FieldPath

Extras: TypeAlias = dict[int, Any]
"""What `_extra` has, by row."""
ExtraValues: TypeAlias = dict[int, dict[FieldPath, Any]]
"""Values for `_extra`, by row, and by path from the row inwards."""
# Sorted: the same fields in another order, or beside other records, are the same text.
extra_text = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def read_extras(texts: pa.Array) -> Extras:
    """Return what `_extra` has of rows, by row, from its texts."""
    extras = {}
    for row, text in enumerate(texts.to_pylist()):
        if text is not None:
            extras[row] = json.loads(text)
    return extras


def is_single(value: Any) -> bool:
    """Return whether a value of `_extra` is one that a column may take: no object, no list."""
    return type(value) in {str, bool}


def find(extra: Any, path: FieldPath) -> Any:
    """Return what is at a path in the content of `_extra`."""
    for step in path:
        extra = extra.get(step) if isinstance(extra, dict) else None
    return extra


def remove_single(extra: Any, path: FieldPath) -> None:
    """Remove the single value at a path from the content of `_extra`."""
    if is_single(find(extra, path)):
        remove(extra, path)


def remove(extra: Any, path: FieldPath) -> None:
    """Remove what is at a path from the content of `_extra`, and objects that are empty then."""
    *outer, last = path
    holder = find(extra, tuple(outer))
    del holder[last]
    if not holder and outer:
        remove(extra, tuple(outer))


def put(path: Sequence[Any], value: Any, *, into: dict[Any, Any]) -> None:
    """Put a value at a path of nested objects, which are made where they are missing."""
    *outer, last = path
    inner = into
    for step in outer:
        inner = inner.setdefault(step, {})
    inner[last] = value


def add_to_extras(extras: pa.Array, added: ExtraValues) -> pa.Array:
    """Return the texts of `_extra` with more values."""
    texts = extras.to_pylist()
    for row, values in added.items():
        extra: dict[Any, Any] = json.loads(texts[row]) if texts[row] else {}
        for path, value in values.items():
            put(path, value, into=extra)
        texts[row] = extra_text(extra)
    return pa.array(texts, pa.string())


def with_numbers_as_text(value: Any) -> Any:
    """Return a value with every number as text."""
    if isinstance(value, dict):
        return {name: with_numbers_as_text(member) for name, member in value.items()}
    if isinstance(value, list):
        return [with_numbers_as_text(item) for item in value]
    if type(value) is int:
        return str(value)
    return value
