"""`[own.NAME]` of `config/mapping.toml`: books of the user, beside what the service says."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from pipelines.config import values

# The heading of a column as it stands in the file: `Invoice No.` is one.
Column = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")] | None
Month = Annotated[str, Field(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")]
Number = Annotated[int, Field(ge=0)]
# As they are compared: in any case, without spaces around them.
Value = Annotated[values.Text, AfterValidator(lambda text: text.strip().lower())]
Values = tuple[Value, ...]
NO_COLUMNS: Final = ("amount_unit", "connection_values", "other_values")


def _about(meaning: str, default: Any = None) -> Any:
    """Return a field with its meaning, which is a comment in the file."""
    return Field(default=default, description=meaning)


class OwnRoles(values.Table):
    """Columns of a source of own books, by their role."""

    id: Column = _about("the service's identifier of the usage record or bill")
    number: Column = _about("invoice number, where own books have it instead of the identifier")
    partner: Column = _about("identifier of the partner")
    period: Column = _about("date, time or month")
    amount: Column = _about("amount")
    currency: Column = _about("ISO 4217 code")
    quantity: Column = _about("quantity")
    amount_unit: Literal["major", "minor"] = _about(
        "minor: amounts are in the smallest unit of the currency (EUR 0.01, JPY 1, KWD 0.001)",
        "major",
    )
    connection: Column = _about("whose row it is, where own books have rows of several connections")
    connection_values: Values = _about("values of connection whose rows are compared", ())
    other_values: Values = _about(
        "values of connection that are known and left out; any other is not understood", ()
    )

    def columns(self) -> dict[str, str]:
        """Return the column of each role that has one."""
        return {role: value for role, value in self if value and role not in NO_COLUMNS}

    @model_validator(mode="after")
    def _require_values(self) -> "OwnRoles":
        if bool(self.connection) != bool(self.connection_values):
            raise ValueError("must have both connection and connection_values, or none of them")
        if self.other_values and not self.connection:
            raise ValueError("other_values are values of the role connection: name its column")
        both = set(self.connection_values) & set(self.other_values)
        if both:
            raise ValueError(f"{min(both)} is in connection_values and in other_values")
        return self


class OwnSource(values.Table):
    """A file, folder, pattern, or table of a database, with rows of own books."""

    against: Literal["usage", "billing"] = _about("what it is compared with", ...)
    connection: values.ConnectionName = _about("connection whose records it has", ...)
    file: values.Text | None = _about(
        "CSV, Parquet or xlsx: a file, folder or pattern, relative to the home"
    )
    url_variable: values.Variable | None = _about(
        "environment variable with the SQLAlchemy URL of a database"
    )
    table: values.Text | None = _about("its table, such as journal_lines or books.journal_lines")
    fewest_rows: Number | None = _about(
        "rows that it must have. It must also have 90 % of the most rows since this was set"
    )
    begins: Month | None = _about(
        "first month of records that it must have. Without it: its first one that the service has"
    )
    roles: OwnRoles = _about("its columns", OwnRoles())

    @model_validator(mode="after")
    def _require_one_place(self) -> "OwnSource":
        is_file = self.file is not None
        is_table = self.url_variable is not None and self.table is not None
        if is_file and (self.url_variable or self.table):
            raise ValueError("must have file, or url_variable and table, not both")
        if not is_file and not is_table:
            raise ValueError("must have file, or url_variable and table")
        return self

    @model_validator(mode="after")
    def _require_roles(self) -> "OwnSource":
        roles = self.roles
        if not (roles.amount and roles.currency):
            raise ValueError("roles must have amount and currency")
        if roles.id and roles.number:
            raise ValueError("roles must have id or number, not both")
        if roles.quantity and self.against == "billing":
            raise ValueError('quantity is of usage: use it with against = "usage"')
        if roles.number and self.against == "usage":
            raise ValueError('number is of bills: use it with against = "billing"')
        has_key = roles.id or roles.number
        has_totals = roles.partner and roles.period
        if not has_key and not has_totals:
            raise ValueError("roles must have id, or number, or both partner and period")
        return self

    @property
    def match_by(self) -> str:
        """What identifies a row: `id`, `number`, or `totals` of partner, month and currency."""
        if self.roles.id:
            return "id"
        return "number" if self.roles.number else "totals"

    @property
    def of_connection(self) -> str:
        """Which of its rows are meant, for people; empty: all."""
        roles = self.roles
        if not roles.connection:
            return ""
        return f" whose {roles.connection} is {' or '.join(roles.connection_values)}"

    @property
    def place(self) -> str:
        """Where its rows are, for people; never an address of a database."""
        return self.file or f"{self.table} in {self.url_variable}"
