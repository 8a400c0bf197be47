"""Reads what the texts of own rows say: exact amounts, months, currencies. Nothing is guessed.

Here: the table of a source, and its view with the types of the side that it is compared with. Not
here: where the texts come from (sources), how both are compared (third_side).
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from pipelines.core.parse import CLOCK, PLAIN_TIME, TIME_BOUNDS
from pipelines.core.text import quote_text
from pipelines.finance.currencies import CODES, MOST_DIGITS, SPACES, minor_unit_of
from pipelines.finance.own_mapping import OwnSource
from pipelines.finance.reconcile.own.left_out import text_of_other
from pipelines.finance.reconcile.own.memory import ROLES
from pipelines.finance.reconcile.spelled import DIGITS, Kind, fit, read_value
from pipelines.warehouse.duckdb_file import column_types, decimal_scale

# Digits before and behind the point that a number may have, so that sums of a billion rows do not
# overflow. More behind it where the service has more.
MOST_WHOLE: Final = 18
LEAST_SCALE: Final = 9
CREATE: Final = """
CREATE OR REPLACE TEMP TABLE {table}_read (
    file INTEGER, row BIGINT, id VARCHAR, partner VARCHAR, currency VARCHAR, month DATE,
    amount DECIMAL(38, {amount}), quantity DECIMAL(38, {quantity}),
    period_text VARCHAR, amount_text VARCHAR, quantity_text VARCHAR, connection_text VARCHAR
)
"""
# The usual spellings. The others are read one by one afterwards, each once.
INSERT: Final = """
INSERT INTO {table}_read
WITH trimmed AS (
    SELECT added.row, {trimmed}
    FROM ({texts}) AS added
    -- No blank rows. In one with an amount, no other text is looked at for that.
    WHERE added.amount_text BETWEEN '!' AND '~' OR coalesce({trimmed_texts}) IS NOT NULL
), parsed AS (
    SELECT
        trimmed.*,
        CASE WHEN length(trimmed.period) = 7
                AND TRY_CAST(trimmed.period || '-01' AS DATE)::VARCHAR = trimmed.period || '-01'
                THEN CAST(trimmed.period || '-01' AS DATE)
             WHEN length(trimmed.period) = 10
                AND TRY_CAST(trimmed.period AS DATE)::VARCHAR = trimmed.period
                THEN CAST(trimmed.period AS DATE)
             WHEN regexp_full_match(trimmed.period, {local_time})
                AND TRY_CAST(left(trimmed.period, 10) AS DATE)::VARCHAR = left(trimmed.period, 10)
                THEN CAST(left(trimmed.period, 10) AS DATE)
             WHEN regexp_full_match(trimmed.period, {time})
                THEN CAST(TRY_CAST(trimmed.period AS TIMESTAMPTZ) AT TIME ZONE {zone} AS DATE)
             END AS day,
        {amount_value} AS amount_value, {quantity_value} AS quantity_value
    FROM trimmed
), typed AS (
    SELECT
        parsed.* REPLACE (
            if(parsed.day BETWEEN {first_day} AND {last_day}, parsed.day, NULL) AS day
        )
    FROM parsed
)
SELECT
    {file}, typed.row, coalesce(typed.id, typed.number), typed.partner, {currency},
    CAST(date_trunc('month', typed.day) AS DATE), typed.amount_value, typed.quantity_value,
    if(typed.day IS NULL, typed.period, NULL), if(typed.amount_value IS NULL, typed.amount, NULL),
    if(typed.quantity_value IS NULL, typed.quantity, NULL), {connection}
FROM typed
"""
# Texts of ordinary letters have no odd spaces: to trim those took a sixth of the time of all.
TRIMMED: Final = """
CASE WHEN regexp_full_match({text}, '[!-~]([ -~]*[!-~])?') THEN {text}
     ELSE nullif(trim({text}, '{spaces}'), '') END"""
# DuckDB reads a decimal of 18 digits thirty times as fast as one of 38.
NUMBER: Final = """
CASE WHEN regexp_full_match({text}, '-?(0|[1-9][0-9]{{0,8}})([.][0-9]{{1,9}})?')
        THEN CAST(CAST({text} AS DECIMAL(18, 9)) AS DECIMAL(38, {scale}))
     WHEN regexp_full_match({text}, '-?(0|[1-9][0-9]{{0,{whole}}})([.][0-9]{{1,{scale}}})?')
        THEN CAST({text} AS DECIMAL(38, {scale})) END"""
LOCAL_TIME: Final = rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{CLOCK}(:[0-5][0-9]([.][0-9]+)?)?"
OTHER_TEXTS: Final = """
SELECT DISTINCT rows.{name}_text FROM {table}_read AS rows WHERE rows.{name}_text IS NOT NULL
"""
CREATE_SPELLED: Final = "CREATE OR REPLACE TEMP TABLE spelled AS FROM added"
UPDATE: Final = """
UPDATE {table}_read AS rows
SET {column} = spelled.value, {name}_text = NULL
FROM spelled
WHERE rows.{name}_text = spelled.text
"""
# A currency that the service has is one, also if ISO 4217 does not know it. EXCEPT looks at each
# currency once; with NOT IN, DuckDB would ask each row.
CREATE_UNKNOWN: Final = """
CREATE OR REPLACE TEMP TABLE {table}_unknown AS
SELECT DISTINCT rows.currency FROM {table}_read AS rows WHERE rows.currency IS NOT NULL
EXCEPT
SELECT unnest({codes})
EXCEPT
SELECT DISTINCT service.currency FROM temp.{service} AS service
"""
CREATE_VIEW: Final = """
CREATE OR REPLACE TEMP VIEW {table} AS
WITH rows AS (
    SELECT
        rows.*,
        {amount} AS exact_amount,
        rows.currency IS NULL OR rows.currency IN (FROM {table}_unknown) AS is_unknown
    FROM {table}_read AS rows
)
SELECT
    rows.file, rows.row, rows.id, rows.partner, rows.currency, rows.month,
    {scaled_amount} AS amount, {scaled_quantity} AS quantity,
    CASE WHEN rows.connection_text IS NOT NULL THEN 'connection'
         WHEN rows.amount IS NULL THEN 'amount' WHEN rows.is_unknown THEN 'currency'
         WHEN {no_month} THEN 'period' WHEN {no_partner} THEN 'partner'
         WHEN rows.quantity_text IS NOT NULL THEN 'quantity' END AS unread,
    CASE unread WHEN 'connection' THEN nullif(rows.connection_text, '')
         WHEN 'amount' THEN rows.amount_text WHEN 'currency' THEN rows.currency
         WHEN 'period' THEN rows.period_text WHEN 'quantity' THEN rows.quantity_text END AS sent,
    {key} AS key
FROM rows
"""
# To drop digits of a decimal of 38 takes DuckDB ten times as long as of one of 18.
FEW_DIGITS: Final = 18
SCALED: Final = """
CASE WHEN abs({value}) < {bound}
        THEN CAST(CAST(CAST({value} AS DECIMAL({few}, {most})) AS DECIMAL({few}, {scale}))
            AS DECIMAL(38, {scale}))
     ELSE CAST({value} AS DECIMAL(38, {scale})) END"""
MONTH_KEY: Final = "concat_ws('|', rows.partner, rows.month, rows.currency)"
HAS_MORE: Final = """
SELECT count(*) > 0 FROM {table}_read AS rows
WHERE {scaled} <> {value}
"""


class Scales(NamedTuple):
    """Digits behind the point of quantities and of amounts."""

    quantity: int
    amount: int


@dataclass(frozen=True)
class OwnTable:
    """The rows of a source in a temporary table `{name}_read`, and the view of them, `name`."""

    name: str
    source: OwnSource
    zone: ZoneInfo
    read: Scales

    @property
    def amount(self) -> str:
        """The expression of an amount in major units."""
        if self.source.roles.amount_unit == "major":
            return "rows.amount"
        return f"rows.amount * {minor_unit_of('rows.currency')}"

    def create(self, db: duckdb.DuckDBPyConnection) -> None:
        """Create the table, empty."""
        db.execute(CREATE.format(table=self.name, **self.read._asdict()))

    def insert(self, texts: str, file: int) -> str:
        """Return the statement that adds texts of a file."""
        trimmed = {}
        for role in ROLES:
            trimmed[role] = TRIMMED.format(text=f"added.{role}_text", spaces=SPACES)
        return INSERT.format(
            table=self.name,
            texts=texts,
            file=file,
            trimmed=", ".join(f"{text} AS {role}" for role, text in trimmed.items()),
            trimmed_texts=", ".join(trimmed.values()),
            currency="upper(typed.currency)",
            connection=text_of_other(self.source.roles),
            amount_value=_number("trimmed.amount", self.read.amount),
            quantity_value=_number("trimmed.quantity", self.read.quantity),
            local_time=quote_text(LOCAL_TIME),
            time=quote_text(PLAIN_TIME),
            first_day=f"DATE '{TIME_BOUNDS[0]}'",
            last_day=f"DATE '{TIME_BOUNDS[1]}'",
            zone=quote_text(self.zone.key),
        )

    def read_others(self, db: duckdb.DuckDBPyConnection) -> None:
        """Read the texts with unusual spellings, each once."""

        def number(scale: int) -> Callable[[str], Any]:
            return lambda text: _exact(read_value(Kind.NUMBER, text, self.zone), scale)

        def month(text: str) -> Any:
            day: Any = read_value(Kind.DAY, text, self.zone)
            return day.replace(day=1) if day else None

        self._read(db, ("amount", "amount"), number(self.read.amount), _decimal(self.read.amount))
        of_quantity = _decimal(self.read.quantity)
        self._read(db, ("quantity", "quantity"), number(self.read.quantity), of_quantity)
        self._read(db, ("period", "month"), month, pa.date32())

    def _read(
        self,
        db: duckdb.DuckDBPyConnection,
        names: tuple[str, str],
        read: Callable[[str], Any],
        of_type: pa.DataType,
    ) -> None:
        name, column = names
        texts = db.execute(OTHER_TEXTS.format(table=self.name, name=name)).fetchall()
        values = {text: read(text) for (text,) in texts}
        known = {text: value for text, value in values.items() if value is not None}
        if known:
            spelled = {
                "text": pa.array(known.keys(), pa.string()),
                "value": pa.array(known.values(), of_type),
            }
            update = UPDATE.format(table=self.name, name=name, column=column)
            db.from_arrow(pa.table(spelled)).query("added", CREATE_SPELLED)
            db.execute(update)

    @property
    def _finest(self) -> Scales:
        """Digits behind the point that quantities, and amounts in major units, may have."""
        more = 0 if self.source.roles.amount_unit == "major" else MOST_DIGITS
        return Scales(self.read.quantity, self.read.amount + more)

    def scales(self, db: duckdb.DuckDBPyConnection, least: Scales) -> Scales:
        """Return the digits behind the point that all rows need, at least those of the service."""
        quantity = least.quantity
        if self.source.roles.quantity:
            quantity = self._scale(db, "rows.quantity", least.quantity, self._finest.quantity)
        return Scales(quantity, self._scale(db, self.amount, least.amount, self._finest.amount))

    def _scale(self, db: duckdb.DuckDBPyConnection, value: str, least: int, most: int) -> int:
        for scale in range(least, most):
            scaled = _scaled(value, most, scale)
            query = HAS_MORE.format(table=self.name, value=value, scaled=scaled)
            if db.execute(query).fetchall() == [(False,)]:
                return scale
        return max(least, most)

    def create_view(self, db: duckdb.DuckDBPyConnection, service: str, scales: Scales) -> None:
        """Create the view, beside the one of the service's records, whose currencies it knows."""
        is_by_totals = self.source.match_by == "totals"
        has_period = self.source.roles.period is not None
        no_month = "rows.period_text IS NOT NULL"
        if is_by_totals:
            no_month = "rows.month IS NULL"
        db.execute(CREATE_UNKNOWN.format(table=self.name, service=service, codes=sorted(CODES)))
        statement = CREATE_VIEW.format(
            table=self.name,
            amount=self.amount,
            scaled_amount=_scaled("rows.exact_amount", self._finest.amount, scales.amount),
            scaled_quantity=_scaled("rows.quantity", self._finest.quantity, scales.quantity),
            no_month=no_month if has_period else "false",
            no_partner="rows.partner IS NULL" if is_by_totals else "false",
            key=MONTH_KEY if is_by_totals else f"coalesce(rows.id, concat('?|', {MONTH_KEY}))",
        )
        db.execute(statement)


def read_scales(service: Scales) -> Scales:
    """Return the digits behind the point with which numbers are read."""
    return Scales(max(LEAST_SCALE, service.quantity), max(LEAST_SCALE, service.amount))


def scales_of_service(db: duckdb.DuckDBPyConnection, against: str) -> Scales:
    """Return the digits behind the point of the service's quantities and amounts."""
    if against == "billing":
        types = column_types(db.sql("SELECT bills.amount FROM temp.bills AS bills"))
        return Scales(quantity=0, amount=decimal_scale(types["amount"]))
    types = column_types(db.sql("SELECT used.quantity, used.amount FROM temp.used AS used"))
    return Scales(decimal_scale(types["quantity"]), decimal_scale(types["amount"]))


def _number(text: str, scale: int) -> str:
    return NUMBER.format(text=text, whole=MOST_WHOLE - 1, scale=scale)


def _scaled(value: str, most: int, scale: int) -> str:
    """Return the expression of a decimal with `scale` digits behind the point instead of `most`."""
    if scale >= most or most > FEW_DIGITS:
        return f"CAST({value} AS DECIMAL(38, {scale}))"
    bound = 10 ** (FEW_DIGITS - most)
    return SCALED.format(value=value, few=FEW_DIGITS, most=most, scale=scale, bound=bound)


def _exact(value: Any, scale: int) -> Decimal | None:
    """Return a number that the table holds exactly; None for another one."""
    fitted = fit(value, scale)
    if fitted is None or fitted != value or abs(fitted) >= 10**MOST_WHOLE:
        return None
    return Decimal(fitted)


def _decimal(scale: int) -> pa.DataType:
    return pa.decimal128(DIGITS, scale)
