"""Adds figures up again, from the records that the service sent.

Not here: where the figures are, in the published books or in the copy of a month (trace_source).
"""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import groupby
from typing import Any, Final

from pipelines.archive.archive import scan_file
from pipelines.archive.records import ERASED_RECORD
from pipelines.core.errors import ArchiveDamaged, ConfigurationError
from pipelines.core.parse import EXACT, parse_number
from pipelines.core.text import printable
from pipelines.finance.currencies import digits_of, lower_trimmed
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.spelled import round_number
from pipelines.finance.trace_source import BREAK, MONTH, TraceSource, open_source
from pipelines.load.records import Number, UnusableRecord, read_record
from pipelines.versions.raw_records import PageRow, ScanName, raw_records
from pipelines.versions.stores import Stores
from pipelines.warehouse.duckdb_file import Row, fetch_rows

FIGURE: Final = ("part", "connection", "partner", "currency", "published")
NOT_ADDED: Final = (
    "The rows of the version do not add up to the published figure. If records were erased, the "
    "figure still contains them."
)
Record = dict[str, Any] | UnusableRecord


@dataclass(frozen=True)
class RawAmounts:
    """Reads amounts from raw records. `paths` are the fields of the roles that the records have."""

    paths: dict[str, str]
    mapping: Mapping

    def read(self, row: Row, record: Record) -> Decimal | None:
        """Return the amount that a record has. Raises UnusableRecord, which says why not."""
        if isinstance(record, UnusableRecord):
            raise record
        is_bill = row["stream"] == "billing"
        line = self._line(row, record)
        amount = self._of_bill(record, line) if is_bill else self._of_usage(record)
        if amount and getattr(self.mapping, row["stream"]).amount_unit == "minor":
            return amount.scaleb(-digits_of(row["currency"]))
        return amount

    def _line(self, row: Row, record: Record) -> str:
        """Return which line of a bill a row is; empty for usage, and for a bill without lines.

        Raises UnusableRecord if the record is another one.
        """
        row_id = row["id"] or ""
        sent_id = self._at(record, f"{row['stream']}.id")
        line = ""
        # The identifier of a line is bill#line. That of a bill may have a # as well.
        if row["stream"] == "billing" and str(sent_id) != row_id and "#" in row_id:
            row_id, _, line = row_id.rpartition("#")
        is_identifier = type(sent_id) in {str, int}
        if row_id and is_identifier and str(sent_id) != row_id:
            raise UnusableRecord("The scan file has another record in its place.")
        return line

    def _of_usage(self, record: Record) -> Decimal | None:
        return _number(self._at(record, "usage.amount"))

    def _at(self, record: Record, role: str) -> Any:
        return _find(record, self.paths[role]) if role in self.paths else None

    def _of_bill(self, record: Record, line: str) -> Decimal | None:
        """Return the amount of a line, of what the lines do not add up to, or of the bill."""
        sent = self._at(record, "billing.line_amount") or ()
        is_credit = self._is_credit(record)
        if line not in {"", "rest"}:
            # No other line is read, as it may be unreadable.
            number = int(line)
            line_amount = sent[number] if number < len(sent) else None
            return _number_of_bill(line_amount, is_credit=is_credit)
        lines = [_number_of_bill(amount, is_credit=is_credit) for amount in sent]
        total = _number_of_bill(self._at(record, "billing.amount"), is_credit=is_credit)
        if line == "rest" and lines:
            return (total or Decimal(0)) - sum(filter(None, lines))
        return total

    def _is_credit(self, record: Record) -> bool:
        kinds = {lower_trimmed(kind) for kind in self.mapping.billing.credit_kinds}
        return lower_trimmed(str(self._at(record, "billing.kind"))) in kinds


def trace_break(stores: Stores, break_id: str, close: str = "") -> Row:
    """Add the amounts of a break up again, as `trace_month`, and raising what it raises.

    Its rows also have invoice number, quantity, price and date, where they are mapped.
    """
    bound = {"break_id": break_id}
    with open_source(stores, "breaks", bound, close) as source:
        rows = fetch_rows(source.db, BREAK, bound)
        own_rows = [_own_row(row) for row in rows if row["own_file"]]
        if not own_rows and not any(row["scan_id"] for row in rows):
            raise ConfigurationError(
                f"{source.name} has no record of break {break_id}: it no longer exists, or its "
                "rule was not evaluated."
            )
        traced = _traced(stores, source, [row for row in rows if row["part"] != "own"])
        traced["rows"] += own_rows
        return traced


def _own_row(row: Row) -> Row:
    """Return a row of own books as those of the service: nothing of it was sent."""
    own_row = {**row, "file": row["own_file"], "from_raw": None, "problem": ""}
    del own_row["published"]
    return own_row


def trace_month(
    stores: Stores, partner: str, month: str, currency: str = "", close: str = ""
) -> Row:
    """Add the figures of a partner (identifier or name) in a month (2026-09) up again.

    `close` names the copy of a closed month, such as 2026-09 or 2026-09/002, which knows partners
    by identifier alone; empty: the published books. Returns the rows of each figure with the
    amounts in their raw records, and both sums. Raises ConfigurationError for what is unknown or
    not mapped, PartnerSyncError.
    """
    bound = {"partner": partner, "month": month, "currency": currency}
    with open_source(stores, "summary", bound, close) as source:
        rows = fetch_rows(source.db, MONTH, bound)
        if not rows:
            in_currency = f" in {currency}" if currency else ""
            as_of = source.name[:1].lower() + source.name[1:]
            raise ConfigurationError(
                f"{printable(partner)} has neither usage nor bills in {month}{in_currency}, as of "
                f"{as_of}."
            )
        return _traced(stores, source, rows)


def _traced(stores: Stores, source: TraceSource, figure_rows: list[Row]) -> Row:
    """Return the rows with their raw amounts, and each figure with the sum of these."""
    amounts = RawAmounts(source.paths, source.mapping)
    rows = [row for row in figure_rows if row["scan_id"]]
    scans = defaultdict[ScanName, list[Row]](list)
    for row in rows:
        scans[row["connection"], row["stream"], row["scan_id"]].append(row)
    # A sum may have more digits than Python's default context keeps.
    with localcontext(EXACT):
        for scan, of_scan in scans.items():
            _read_scan(stores, amounts, scan, of_scan)
        sums = _sums(figure_rows)
    for row in rows:
        del row["published"]
    is_same = all(figure["same"] for figure in sums)
    return {
        "source": source.name,
        "version": source.version,
        "rows": rows,
        "sums": sums,
        "same": is_same,
        "problem": "" if is_same else source.remedy,
    }


def _sums(figure_rows: list[Row]) -> list[Row]:
    """Return each published figure with the sum of its raw amounts, where there is either."""
    sums = []
    for figure, of_figure in groupby(figure_rows, _figure):
        compared = _compare(figure, [row for row in of_figure if row["scan_id"]])
        if compared is not None:
            sums.append(compared)
    return sums


def _figure(row: Row) -> Row:
    """Return the figure that a row belongs to."""
    return {name: row[name] for name in FIGURE}


def _read_scan(stores: Stores, amounts: RawAmounts, scan: ScanName, rows: list[Row]) -> None:
    """Add to rows of one scan file what their raw records say, or why they say nothing."""
    missing = UnusableRecord("The scan file has no such record.")
    records: dict[PageRow, Record] = {}
    try:
        raws = raw_records(stores, scan, {(row["page"], row["row"]) for row in rows})
        for place, raw in raws.items():
            records[place] = _read_raw(raw)
    except ArchiveDamaged as error:
        missing = UnusableRecord(str(error))
    for row in rows:
        amount = None
        problem = ""
        try:
            amount = amounts.read(row, records.get((row["page"], row["row"]), missing))
            if amount != row["amount"]:
                problem = "The raw record has another amount."
        except UnusableRecord as error:
            problem = str(error)
        row["file"] = scan_file(*scan)
        row["from_raw"] = amount
        row["problem"] = problem


def _read_raw(raw: bytes) -> Record:
    if raw == ERASED_RECORD:
        return UnusableRecord("The record was erased.")
    return read_record(raw)


def _compare(figure: Row, rows: list[Row]) -> Row | None:
    """Return a published figure with the sum of its raw amounts; None where there is neither."""
    if not rows and figure["published"] is None:
        return None
    total = None
    wrong = 0
    for row in rows:
        if row["from_raw"] is not None:
            total = (total or Decimal(0)) + row["from_raw"]
        if row["problem"]:
            wrong += 1
    problem = ""
    if wrong:
        problem = f"See {wrong:,} of its {len(rows):,} rows."
    elif (total or 0) != (figure["published"] or 0):
        problem = NOT_ADDED
    return figure | {"from_raw": total, "same": not problem, "problem": problem}


def _find(value: Any, path: str) -> Any:
    """Return what is at a path such as `lines[].amount`: a list if the path has `[]`."""
    if not path:
        return value
    name, _, rest = path.partition(".")
    inner = value.get(name.removesuffix("[]")) if isinstance(value, dict) else None
    if not name.endswith("[]"):
        return _find(inner, rest)
    if not isinstance(inner, list):
        return []
    return [_find(item, rest) for item in inner]


def _number(value: Any) -> Decimal | None:
    """Return an amount as reconciliation reads it. Raises UnusableRecord for what is none."""
    if value is None:
        return None
    number = None
    if type(value) in {int, str, Number}:  # a boolean is an int for `isinstance`
        number = parse_number(str(value))
    if number is None:
        raise UnusableRecord(f"The raw record has no amount but `{printable(value, 40)}`.")
    return round_number(number)


def _number_of_bill(value: Any, *, is_credit: bool) -> Decimal | None:
    """Return an amount of a bill: that of a credit note is negative, however it was sent."""
    amount = _number(value)
    if amount is None or not is_credit:
        return amount
    return -abs(amount)
