"""Decides before the first write whether a scan must wait for a person, and why."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.load.delta import Delta


@dataclass(frozen=True)
class Evidence:
    """What the guards look at. `keyless` records lack a key that can be read.

    `had_key` is the key of the last loaded scan of this list; `is_first`: there is none.
    `new_types` names the columns that would be new or wider.
    """

    delta: Delta
    rows: int
    key: str | None
    keyless: int
    is_first: bool
    had_key: str | None
    is_frozen: bool
    new_types: Iterable[str]


def reason_to_hold(found: Evidence, max_deleted_share: float, *, allow_empty: bool) -> str | None:
    """Return why a scan must not be loaded without approval; None where it may be."""
    return (
        _key_reason(found, max_deleted_share)
        or _deleted_reason(found, max_deleted_share, allow_empty=allow_empty)
        or _schema_reason(found)
    )


def _key_reason(found: Evidence, share: float) -> str | None:
    if not found.is_first and found.key != found.had_key:
        return (
            f"The primary key was {_named(found.had_key)} and is {_named(found.key)} now. Every "
            "row would be deleted and loaded as a new one."
        )
    if found.key is not None and found.keyless > max(1, share * found.rows):
        return (
            f"{found.keyless:,} of {found.rows:,} records have no readable value of the primary "
            f"key `{found.key}`. They would go to quarantine."
        )
    return None


def _deleted_reason(found: Evidence, share: float, *, allow_empty: bool) -> str | None:
    current, deleted = found.delta.current, found.delta.deleted
    if found.key is None:  # a changed row is a deleted and a new one
        deleted = max(0, deleted - found.delta.new)
    if current and not found.rows and found.delta.deleted:
        if allow_empty:
            return None
        return f"The list is empty and had {current:,} rows. All of them would be deleted."
    if deleted > share * current:
        return (
            f"{deleted:,} of {current:,} rows are gone from the list, more than {share:.0%}. "
            "They would be deleted."
        )
    return None


def _schema_reason(found: Evidence) -> str | None:
    columns = sorted(found.new_types)
    if not found.is_frozen or not columns:
        return None
    more = f" and {len(columns) - 5:,} more" if len(columns) > 5 else ""  # noqa: PLR2004
    return (
        f"The columns of this stream are frozen, and {len(columns):,} of them would be new or "
        f"have another type: {', '.join(columns[:5])}{more}."
    )


def _named(key: str | None) -> str:
    return "the whole record" if key is None else f"`{key}`"
