"""Compares a source with what it had in the books before, so that no loss of rows is silent."""

from dataclasses import dataclass
from datetime import date
from typing import Final

from pipelines.core.text import counted
from pipelines.finance.own_mapping import OwnSource
from pipelines.finance.reconcile.own.not_read import NotRead

LEAST_SHARE: Final = 0.9  # of the most rows that it had
SET: Final = (
    "If that is right, set {setting} below [own.{name}] in mapping.toml, then run "
    "`partner-sync reconcile`"
)


@dataclass(frozen=True)
class Before:
    """What a source had: the most rows since `fewest_rows` was set, and its first month."""

    rows: int | None = None
    fewest_rows: int | None = None
    begins: date | None = None

    def most_rows(self, source: OwnSource) -> int | None:
        """Return with how many rows a source is compared. What a person sets counts anew."""
        if source.fewest_rows is not None and source.fewest_rows != self.fewest_rows:
            return source.fewest_rows
        return self.rows


NOTHING: Final = Before()


def require_rows(name: str, source: OwnSource, before: Before, rows: int) -> None:
    """Raise NotRead where rows were lost."""
    fewest = source.fewest_rows
    if fewest is not None and rows < fewest:
        raise NotRead(f"{source.place} has {counted(rows, 'row')}, fewer than {fewest:,}")
    if rows == 0:
        raise NotRead(f"{source.place} has no row{source.of_connection}")
    most = before.most_rows(source) or 0
    if rows < LEAST_SHARE * most:
        # The same number again would change nothing.
        accepted = rows if rows != fewest else rows - 1
        setting = SET.format(setting=f"fewest_rows = {accepted}", name=name)
        raise NotRead(
            f"{source.place} has {counted(rows, 'row')}, and had {most:,} before. {setting}"
        )


def require_begin(name: str, source: OwnSource, before: Before, begins: date | None) -> None:
    """Raise NotRead where the first month was lost: nothing of it would be compared any more."""
    if source.begins or before.begins is None or begins is None or begins <= before.begins:
        return
    setting = SET.format(setting=f'begins = "{begins:%Y-%m}"', name=name)
    raise NotRead(
        f"{source.place} begins with {begins:%Y-%m}, and began with {before.begins:%Y-%m} before. "
        f"{setting}"
    )
