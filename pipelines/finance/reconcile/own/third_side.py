"""Compares own books with usage or bills: the third side.

Here: one source from its texts to its breaks and totals, and why it has none. Not here: its files
(sources), its values (rows), and the SQL (statements).
"""

from datetime import date, datetime
from functools import cached_property
from typing import Final

import duckdb

from pipelines.core.text import counted, printable, quote_text
from pipelines.finance.own_mapping import OwnSource
from pipelines.finance.reconcile.normalize import Sides
from pipelines.finance.reconcile.own import statements as sql
from pipelines.finance.reconcile.own.before import NOTHING, require_begin, require_rows
from pipelines.finance.reconcile.own.files import PASSING
from pipelines.finance.reconcile.own.inputs import RULE, OwnInputs
from pipelines.finance.reconcile.own.left_out import leave_out
from pipelines.finance.reconcile.own.not_read import NotRead
from pipelines.finance.reconcile.own.rows import OwnTable, scales_of_service
from pipelines.finance.reconcile.own.sources import OwnFile, digest_of_all, load_texts
from pipelines.warehouse.duckdb_file import Row, fetch_rows, insert_row
from pipelines.warehouse.memory_limit import is_memory_refused, readable_error

NEEDS: Final = {
    ("usage", "id"): ("usage.id", "usage.amount", "usage.currency"),
    ("usage", "totals"): ("usage.partner", "usage.period", "usage.amount", "usage.currency"),
    ("billing", "id"): ("billing.id", "billing.amount", "billing.currency"),
    ("billing", "number"): ("billing.number", "billing.amount", "billing.currency"),
    ("billing", "totals"): (
        "billing.partner", "billing.period", "billing.amount", "billing.currency",
    ),
}  # fmt: skip
VIEWS: Final = {"usage": "used", "billing": "bills"}
# Without them on the side of the service, what own books say would not be compared.
COMPARED: Final = {"partner", "period", "quantity"}
CHECK: Final = "Run `partner-sync own check`"
REMEDY: Final = "Compare both records. Correct your own books, or ask the service."


class ThirdSide:
    """One source of own books in open books. `problem` says why it is not compared."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, name: str, table: OwnTable, others: list[str]
    ) -> None:
        self._db = db
        self._table = table
        self._others = others
        self.name = name
        self.source: OwnSource = table.source
        self.files: list[OwnFile] = []
        self.problem = ""
        self.read_at: datetime | None = None
        self.rows: int | None = None
        self.matched: int | None = None
        self.begins: date | None = None
        self.left_out: list[Row] = []
        self._before = NOTHING
        self._unread_records = 0
        self._scales = table.read

    @property
    def rule(self) -> str:
        """The rule that finds its breaks."""
        return f"{RULE}{self.name}"

    @property
    def no_row(self) -> str:
        """A query without a row, with the types of its amounts and quantities."""
        return sql.NO_ROW.format(table=self._table.name)

    @property
    def sha256(self) -> str | None:
        """The digest of its files; None where they were not read whole."""
        return digest_of_all(self.files) if self.files else None

    def read(self, sides: Sides, inputs: OwnInputs) -> None:
        """Read the rows, or note why they cannot be read. Raises duckdb.Error for no memory."""
        self._table.create(self._db)
        self._scales = scales_of_service(self._db, self.source.against)
        self._before = inputs.before.get(self.name, NOTHING)
        try:
            self._require_roles(sides)
            files = load_texts(self._db, self.source, inputs.root, self._table.insert)
            self.left_out = leave_out(self._db, self._table.name, self._others)
            self._table.read_others(self._db)
            self.files = files
            self.read_at = inputs.now
            ((self.rows,),) = self._db.execute(sql.ROWS.format(table=self._table.name)).fetchall()
            self._scales = self._table.scales(self._db, self._scales)
            require_rows(self.name, self.source, self._before, self.rows or 0)
        except NotRead as error:
            self.problem = f"{error}. {CHECK}"
        except duckdb.Error as error:
            if is_memory_refused(error) or isinstance(error, PASSING):
                raise
            self.problem = f"{self.source.place} cannot be read: {readable_error(error)}. {CHECK}"
        self._create_views()

    def _require_roles(self, sides: Sides) -> None:
        """Raise NotRead where the mapping lacks what the service's records need."""
        needs = dict.fromkeys(NEEDS[self.source.against, self.source.match_by])
        for role in COMPARED & self.source.roles.columns().keys():
            needs[f"{self.source.against}.{role}"] = None
        reason = sides.missing(needs)
        if reason:
            raise NotRead(reason)

    def _create_views(self) -> None:
        """Create the views of both: the service's records, and the own rows."""
        statement = sql.USAGE if self.source.against == "usage" else sql.BILLING
        self._execute(statement, {}, key=self._key_of_service())
        self._table.create_view(self._db, self._service, self._scales)

    def _key_of_service(self) -> str:
        """Return the expression of what a record of the service has in common with own rows."""
        if self.source.match_by == "totals":
            return sql.TOTALS_KEY.format(rows=VIEWS[self.source.against])
        if self.source.against == "usage":
            return "used.id"
        if self.source.match_by == "number":
            # A bill without a number shares it with no own row.
            return "coalesce(bills.number, concat('?#', bills.bill))"
        return "bills.bill"

    @property
    def _service(self) -> str:
        return f"{self._table.name}_service"

    def find_breaks(self) -> None:
        """Add the breaks and totals of the source to open books, or note why not."""
        if not self.problem:
            self.match()
        if self.problem:
            return
        connection = self.source.connection
        self._execute(sql.FOUND, {}, **self._terms_of_found())
        of_breaks: Row = {"connection": connection, "rule": self.rule, "files": self._names()}
        self._db.execute(sql.INSERT_BREAKS, of_breaks)
        of_totals: Row = {"connection": connection, "source": self.name}
        month = "months.month" if self.source.roles.period else "NULL::DATE"
        self._execute(sql.INSERT_TOTALS, of_totals, month=month)

    def match(self) -> None:
        """Find which keys both have, and which differ. Raises duckdb.Error."""
        is_by_totals = self.source.match_by == "totals"
        statement = sql.KEYS.format(
            table=self._table.name,
            service=self._service,
            own_content=sql.OWN_CONTENT.format(equal=self._equal("own")),
            service_content=sql.SERVICE_CONTENT.format(equal=self._equal("service")),
            is_odd=sql.ODD_TOTALS if is_by_totals else sql.ODD_ROWS,
        )
        self._db.execute(statement)
        ((self.matched,),) = self._db.execute(sql.MATCHED).fetchall()
        if self.matched == 0:
            what = "partner, month and currency" if is_by_totals else self.source.match_by
            self.problem = (
                f"no {what} of {self.source.place} is one of {self.source.against}. {CHECK}, and "
                f"correct [own.{self.name}.roles] in mapping.toml"
            )
            return
        self._find_begin()

    def _find_begin(self) -> None:
        """Find the first month that is compared, and what of it nobody can compare."""
        begins = self.source.begins
        self._execute(sql.MONTHS, {})
        self._execute(sql.BEGIN, {}, begins=f"DATE '{begins}-01'" if begins else "NULL::DATE")
        ((self.begins,),) = self._db.execute(sql.BEGAN).fetchall()
        try:
            require_begin(self.name, self.source, self._before, self.begins)
        except NotRead as error:
            self.problem = f"{error}. {CHECK}"
        ((self._unread_records,),) = self._db.execute(sql.UNREAD_RECORDS).fetchall()

    def unread(self, limit: int) -> list[Row]:
        """Return rows that are not understood: file, row, role, what it says, and how many."""
        if self.sha256 is None:
            return []
        rows = fetch_rows(self._db, sql.UNREAD.format(table=self._table.name), {"limit": limit})
        for row in rows:
            row["file"] = self._names()[row["file"]]
        return rows

    @cached_property
    def _first_unread(self) -> Row | None:
        """The first row that is not understood, with how many there are (`rows`)."""
        rows = self.unread(1)
        return rows[0] if rows else None

    def totals(self) -> list[Row]:
        """Return the totals of the rows that are understood, by month and currency."""
        if self.sha256 is None:
            return []
        return fetch_rows(self._db, sql.OWN_TOTALS.format(table=self._table.name))

    def doubt(self) -> str:
        """Return why its breaks are uncertain, although it was compared; empty: they are not."""
        row = self._first_unread
        if row is not None:
            sent = "nothing" if row["sent"] is None else f"`{printable(row['sent'], 40)}`"
            return (
                f"{counted(row['rows'], 'row')} not understood, such as row {row['row']} of "
                f"{row['file']}: {row['role']} {sent}. {CHECK}"
            )
        if self._unread_records:
            records = counted(self._unread_records, "record")
            return f"{records} of {self.source.against} not understood, and not compared"
        return ""

    def rows_of_month(self) -> str:
        """Return the query of the rows of a month (`$month`), for its copy."""
        is_of_month = sql.HAS_MONTH
        if not self.source.roles.period:
            is_of_month = sql.HAS_RECORD.format(service=self._service)
        return sql.OF_MONTH.format(
            is_of_month=is_of_month,
            table=self._table.name,
            source=quote_text(self.name),
            connection=quote_text(self.source.connection),
            files=f"[{', '.join(map(quote_text, self._names()))}]",
        )

    def note(self) -> None:
        """Write what is known of the source to open books."""
        insert_row(self._db, "reconciliation.own_sources", self._as_source())
        if self._first_unread is not None:
            bound = {"source": self.name, "connection": self.source.connection}
            self._execute(sql.INSERT_UNREAD, {**bound, "files": self._names()})
        statement = sql.INSERT_FILE.format(table=self._table.name)
        for number, file in enumerate(self.files):
            of_file: Row = {
                "source": self.name,
                "connection": self.source.connection,
                "number": number,
                "file": file.name,
                "sha256": file.sha256,
            }
            self._db.execute(statement, of_file)

    def _as_source(self) -> Row:
        """Return its row of `reconciliation.own_sources`."""
        source = self.source
        left_out = None
        if source.roles.connection:
            left_out = sum(row["rows"] for row in self.left_out)
        return {
            "source": self.name,
            "connection": source.connection,
            "against": source.against,
            "place": source.place,
            "match_by": source.match_by,
            "read_at": self.read_at,
            "sha256": self.sha256,
            "rows": self.rows,
            "rows_before": self._before.most_rows(source),
            "not_understood": self._first_unread["rows"] if self._first_unread else 0,
            "matched": self.matched,
            "evaluated": not self.problem,
            "reason": self.problem or self.doubt() or None,
            "fewest_rows": source.fewest_rows,
            "begins": self._before.begins if self.problem else self.begins,
            "left_out": left_out,
        }

    def as_rule(self) -> Row:
        """Return its row of `reconciliation.rules`."""
        against = self.source.against
        return {
            "rule": self.rule,
            "question": f"Do the own books {self.name} ({self.source.place}) agree with {against}?",
            "evaluated": not self.problem,
            "reason": self.problem or self.doubt() or None,
            "remedy": REMEDY,
            "rests_on": f"less {against}",
            "is_needed": True,
            "own_source": self.name,
        }

    def _names(self) -> list[str]:
        return [file.name for file in self.files]

    def _equal(self, rows: str) -> str:
        """Return the columns that have to be equal of two rows."""
        roles = self.source.roles
        equal = [f"{rows}.currency", f"{rows}.amount"]
        if roles.partner:
            equal.append(f"{rows}.partner")
        if roles.period:
            equal.append(f"{rows}.month")
        if roles.quantity:
            equal.append(f"{rows}.quantity")
        return ", ".join(equal)

    def _terms_of_found(self) -> dict[str, str]:
        if self.source.match_by == "totals":
            # As of a partner's month: in smallest units alone.
            minor = sql.MINOR_TERMS.format(name="month_minor")
            return {"by_totals": "true", "minor_terms": minor, "share_terms": "0"}
        minor = sql.MINOR_TERMS.format(name="line_minor")
        return {"by_totals": "false", "minor_terms": minor, "share_terms": sql.SHARE_TERMS}

    def _execute(self, statement: str, bound: Row, **gaps: str) -> None:
        text = statement.format(
            table=self._table.name,
            service=self._service,
            connection=quote_text(self.source.connection),
            against=self.source.against,
            scale=self._scales.amount,
            quantity_scale=self._scales.quantity,
            **gaps,
        )
        self._db.execute(text, bound)
