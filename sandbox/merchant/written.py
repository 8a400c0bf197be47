"""What callers write: notes, replies, alerts, payment links, payment method requests.

Here: creating, changing, deleting and listing the records of one table, always within one
organization. Not here: what a record contains (schemas), HTTP (routes).
"""

import secrets
from typing import Any

from sqlalchemy import Engine, Table, delete, func, insert, select, update

from sandbox.data.listing import Listing
from sandbox.merchant import tables
from sandbox.merchant.book import JSON, encoded

ID_BYTES = 12  # 24 hexadecimal characters, as all identifiers


def new_id() -> str:
    """Make an identifier that nobody can guess."""
    return secrets.token_hex(ID_BYTES)


class Written:
    """The records of one table; ``owner`` names the columns that say whose they are."""

    def __init__(self, engine: Engine, table: Table) -> None:
        self._engine = engine
        self._table = table

    def listing(self, **owner: str) -> Listing:
        """Give the owner's records in the order of their creation, as of now."""
        document, place = self._table.c.document, self._table.c.place
        with self._engine.connect() as connection:
            every = select(func.count()).select_from(self._table).filter_by(**owner)
            count = connection.execute(every).scalar_one()

        def rows(start: int, stop: int) -> list[bytes]:
            # Offsets beyond what SQLite counts to are beyond the end as well.
            if start >= count:
                return []
            page = select(document).filter_by(**owner).order_by(place)
            with self._engine.connect() as connection:
                found = connection.execute(page.offset(start).limit(stop - start)).scalars()
                return [encoded(one) for one in found]

        return Listing(count, rows)

    def get(self, record_id: str, **owner: str) -> JSON | None:
        """Give a record, None if the owner has no such one."""
        query = select(self._table.c.document).filter_by(id=record_id, **owner)
        with self._engine.connect() as connection:
            found: JSON | None = connection.execute(query).scalar_one_or_none()
            return found

    def create(self, record_id: str, document: JSON, **owner: str) -> None:
        """Write a new record."""
        row: dict[str, Any] = {"id": record_id, "document": document, **owner}
        with self._engine.begin() as connection:
            connection.execute(insert(self._table).values(row))

    def change(self, record_id: str, document: JSON) -> None:
        """Write a record anew."""
        which = update(self._table).where(self._table.c.id == record_id)
        with self._engine.begin() as connection:
            connection.execute(which.values(document=document))

    def delete(self, record_id: str, **owner: str) -> bool:
        """Delete a record and what hangs on it; False if the owner has no such one."""
        with self._engine.begin() as connection:
            gone = connection.execute(delete(self._table).filter_by(id=record_id, **owner))
            return bool(gone.rowcount)


class Writings:
    """All tables that callers write."""

    def __init__(self, engine: Engine) -> None:
        self.notes = Written(engine, tables.notes)
        self.replies = Written(engine, tables.replies)
        self.alerts = Written(engine, tables.alerts)
        self.payment_links = Written(engine, tables.payment_links)
        self.payment_method_requests = Written(engine, tables.payment_method_requests)
