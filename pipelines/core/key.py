"""The key of a list: the name of a field, or of several that identify a record together."""

import json
from collections.abc import Sequence


def key_name(fields: Sequence[str]) -> str:
    """Return the name of a key as settings, scan files and tables have it.

    That of several fields is JSON text of the list of their names.
    """
    return fields[0] if len(fields) == 1 else list_text(fields)


def key_fields(name: str | None) -> tuple[str, ...]:
    """Return the fields of a key."""
    if name is None:
        return ()
    if not name.startswith('["'):
        return (name,)
    try:
        return tuple(json.loads(name))
    # A field may have a name that only begins like JSON text.
    except ValueError:
        return (name,)


def list_text(texts: Sequence[str]) -> str:
    """Return JSON text of a list of texts."""
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
