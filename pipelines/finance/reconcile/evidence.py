"""What all rows of a published version say about a field: shares of values.

Not here: sums and products, over a sample (samples).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import duckdb

from pipelines.core.parse import NUMBER
from pipelines.finance.currencies import CODES, SPACES
from pipelines.finance.mapping import FIELD_PATH
from pipelines.finance.reconcile.roles import DAY, FieldColumn, read_columns

# A field of a list in a list is none of a line.
MAPPABLE: Final = re.compile(rf"(?!.*\[\].*\[\]){FIELD_PATH}").match
LABELS: Final = ("VARCHAR", "BIGINT")
# Different values that a status or kind has at most.
FEW: Final = 20
# A share of values that differ: what counts from 1 in every record refers to nothing.
SOME: Final = 0.5
COUNTED: Final = 5  # numbers that COUNTS has for each column
KEYS: Final = """
SELECT loads.stream, max_by(loads.key, loads.valid_time) FROM meta.loads AS loads GROUP BY ALL
"""
# The first condition of each is fast, and spares most values the second one.
CODE: Final = """
CASE WHEN length({value}) BETWEEN 3 AND 9 THEN upper(trim({value}, '{spaces}')) IN {codes} END
"""
TIME: Final = "CASE WHEN {value} BETWEEN '0' AND ':' THEN {day} IS NOT NULL END"
NUMBER_TEXT: Final = """
CASE WHEN {value} BETWEEN '-' AND ':' THEN regexp_full_match({value}, '{number}') END
"""
COUNTS: Final = """
count({value}), approx_count_distinct({value}), count({value}) FILTER ({is_code}),
count({value}) FILTER ({is_time}), count({value}) FILTER ({is_number})
"""
SHARES: Final = """
SELECT count(*), count(DISTINCT {table.row}._connection), {counts}
FROM {table.source}
"""
VALUES: Final = """
SELECT DISTINCT {column.row}._connection AS connection, CAST({column.value} AS VARCHAR) AS value
FROM {column.source}
WHERE {column.value} IS NOT NULL
"""
FOUND: Final = """
SELECT count(*)
FROM (
    SELECT {column.row}._connection AS connection, CAST({column.value} AS VARCHAR) AS value
    FROM {column.source}
) AS one
SEMI JOIN ({targets}) AS target
    ON target.connection = one.connection AND target.value = one.value
"""


class Share(NamedTuple):
    """So many of so many. Written without rounding up: only all of them are 100 %."""

    part: int
    whole: int

    @classmethod
    def of(cls, answers: Iterable[bool]) -> "Share":
        """Return how many answers are yes."""
        answers = list(answers)
        return cls(sum(answers), len(answers))

    @property
    def value(self) -> float:
        """The share from 0 to 1; 0 of nothing."""
        return self.part / (self.whole or 1)

    def __str__(self) -> str:
        percent = self.part * 1000 // (self.whole or 1) / 10
        return f"{self.part:,} of {self.whole:,} ({percent:g} %)"


class Evidence:
    """Counts in the rows of `current`: `shares` of each column that a mapping can name, by kind.

    `keys` are the primary keys that the newest scan of each list had.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        self.keys: dict[str, str | None] = dict(db.execute(KEYS).fetchall())
        self.shares: dict[FieldColumn, dict[str, Share]] = {}
        tables: dict[str, list[FieldColumn]] = {}
        for column in read_columns(db):
            if MAPPABLE(column.path):
                tables.setdefault(column.table, []).append(column)
        for columns in tables.values():
            self._measure(columns)

    def _measure(self, columns: Sequence[FieldColumn]) -> None:
        """Read a table once for the shares of all of its columns."""
        counts = ", ".join(map(_counts, columns))
        ((rows, connections, *numbers),) = self._rows(
            SHARES.format(table=columns[0], counts=counts)
        )
        if not rows:
            return
        for at, column in enumerate(columns):
            of_column = numbers[at * COUNTED : (at + 1) * COUNTED]
            self.shares[column] = _shares(column, of_column, rows, connections)

    def is_filled(self, column: FieldColumn) -> bool:
        """Whether every row has a value."""
        filled = self.shares[column]["filled"]
        return filled.part == filled.whole

    def is_unique(self, column: FieldColumn) -> bool:
        """Whether every row has a text or a whole number, and all differ in a connection."""
        labels = self.shares[column]["labels"]
        different = self.shares[column]["different"]
        if labels.part < labels.whole or different.value < SOME:
            return False
        count = f"SELECT count(*) FROM ({VALUES.format(column=column)}) AS one"
        return self._rows(count) == [(labels.whole,)]

    def referring(self, column: FieldColumn, target: FieldColumn) -> Share:
        """Return the share of values that are values of another column in the same connection."""
        if column.type not in LABELS:
            return Share(0, 0)
        targets = VALUES.format(column=target)
        ((part,),) = self._rows(FOUND.format(column=column, targets=targets))
        return Share(part, self.shares[column]["filled"].part)

    def values(self, column: FieldColumn) -> list[str]:
        """Return the different values of a column that has few, in their order."""
        rows = self._rows(VALUES.format(column=column))
        return sorted({value for _connection, value in rows})

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._db.execute(query).fetchall()


def _counts(column: FieldColumn) -> str:
    """Return the expressions of COUNTED counts of a column."""
    if column.type == "VARCHAR":
        codes = tuple(sorted(CODES))
        is_code = CODE.format(value=column.value, spaces=SPACES, codes=codes)
        is_time = TIME.format(value=column.value, day=DAY.format(value=column.value))
        is_number = NUMBER_TEXT.format(value=column.value, number=NUMBER)
    else:
        is_code = "false"
        is_time = str(column.type.startswith(("DATE", "TIMESTAMP")))
        is_number = str(column.is_number)
    return COUNTS.format(value=column.value, is_code=is_code, is_time=is_time, is_number=is_number)


def _shares(
    column: FieldColumn, counts: Sequence[int], rows: int, connections: int
) -> dict[str, Share]:
    """Return the shares of a column, by what its counts mean."""
    values, distinct, codes, times, numbers = counts
    is_label = column.type in LABELS
    is_few = column.type == "VARCHAR" and distinct <= FEW
    return {
        "filled": Share(values, rows),
        "labels": Share(values if is_label else 0, rows),
        "numbers": Share(numbers, rows),
        "codes": Share(codes, values),
        "times": Share(times, values),
        "few": Share(values if is_few else 0, values),
        "words": Share(values - numbers if is_few else 0, rows),
        # About: DuckDB estimates how many differ, and each connection may have all of them.
        "different": Share(min(distinct * connections, values), values),
    }
