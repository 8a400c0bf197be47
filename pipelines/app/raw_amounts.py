"""Reads amounts again from raw records, by the fields that are mapped."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pipelines.app.reconciled import Reconciled
from pipelines.app.session import AppSession
from pipelines.app.trace import Place
from pipelines.archive.records import ERASED_RECORD
from pipelines.config.mapping import REMEDY, read_mapping
from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.load.records import Number, UnusableRecord, read_records, to_decimal
from pipelines.load.schema import Kind
from pipelines.load.values import PATTERNS
from pipelines.reconcile.roles import find_roles
from pipelines.warehouse.duckdb_file import Row

REST: Final = "rest"  # of a bill: what its lines do not add up to
Record = dict[str, Any] | UnusableRecord


@dataclass(frozen=True)
class RawAmounts:
    """Reads amounts from raw records. `paths` are the fields of the roles that the records have."""

    paths: dict[str, str]
    credit_kinds: tuple[str, ...]

    def read(self, row: Row, record: Record) -> Decimal | None:
        """Return the amount that a record has. Raises UnusableRecord, which says why not."""
        if isinstance(record, UnusableRecord):
            raise record
        is_bill = row["stream"] == "billing"
        record_id, line = row["id"] or "", ""
        found = self._at(record, f"{row['stream']}.id")
        if is_bill and str(found) != record_id and "#" in record_id:  # a line, not the bill
            record_id, _, line = record_id.rpartition("#")
        if record_id and type(found) in {str, int} and str(found) != record_id:
            raise UnusableRecord("The scan file has another record in its place.")
        return self._of_bill(record, line) if is_bill else _number(self._at(record, "usage.amount"))

    def _at(self, record: Any, role: str) -> Any:
        return _find(record, self.paths[role]) if role in self.paths else None

    def _of_bill(self, record: Any, line: str) -> Decimal | None:
        """Return the amount of a line, of what the lines do not add up to, or of the bill."""
        lines = self._at(record, "billing.line_amount") or ()
        amounts = [_number(each) for each in (self._at(record, "billing.amount"), *lines)]
        if str(self._at(record, "billing.kind")) in self.credit_kinds:
            amounts = [None if each is None else -abs(each) for each in amounts]
        total, *amounts = amounts
        if not line:
            return total
        if line == REST:
            return (total or Decimal(0)) - sum(filter(None, amounts)) if amounts else total
        return amounts[int(line)] if int(line) < len(amounts) else None


def read_raws(raws: dict[Place, bytes]) -> dict[Place, Record]:
    """Return what is in raw records, or why nothing is; all at once, which is ten times as fast."""
    kept = {place: raw for place, raw in raws.items() if raw != ERASED_RECORD}
    found = dict(zip(kept, read_records([*kept.values()]), strict=True))
    return {place: found.get(place, UnusableRecord("The record was erased.")) for place in raws}


def read_fields(session: AppSession, opened: Reconciled) -> RawAmounts:
    """Return the fields that the records have. Raises ConfigurationError where none is mapped."""
    mapping = read_mapping(session.settings.places.mapping_file)
    if mapping is None:
        raise ConfigurationError("Nothing is mapped any more: no amount can be read.", REMEDY)
    columns = find_roles(opened.db, mapping).columns
    paths = {role: column.path for role, column in columns.items()}
    return RawAmounts(paths, mapping.billing.credit_kinds)


def _find(value: Any, path: str) -> Any:
    """Return what is at a path such as `lines[].amount`: a list if the path has `[]`."""
    name, _, rest = path.partition(".")
    found = value.get(name.removesuffix("[]")) if isinstance(value, dict) else None
    if name.endswith("[]"):
        items = found if isinstance(found, list) else []
        return [_find(each, rest) if rest else each for each in items]
    return _find(found, rest) if rest else found


def _number(value: Any) -> Decimal | None:
    """Return an amount exactly. Raises UnusableRecord for what is none."""
    if value is None:
        return None
    is_number = type(value) in {int, Number} or (
        type(value) is str and re.fullmatch(PATTERNS[Kind.DECIMAL], value)
    )
    number = to_decimal(value) if is_number else None
    if number is None:
        raise UnusableRecord(f"The raw record has no amount but `{printable(value, 40)}`.")
    return number
