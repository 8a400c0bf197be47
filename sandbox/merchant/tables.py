"""The tables of the store (SQLAlchemy Core on SQLite), and opening them in memory or in a file.

Here: columns, and the one connection that a sandbox holds. Not here: what is read and written.
"""

from pathlib import Path

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Engine,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    insert,
    select,
)
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import StaticPool

metadata = MetaData()

about = Table("about", metadata, Column("seed", Integer, nullable=False))

organizations = Table(
    "organizations",
    metadata,
    Column("id", String, primary_key=True),
    Column("enabled", Boolean, nullable=False),
    Column("trial", String, nullable=False),
    Column("billing", Boolean, nullable=False),
)

logins = Table(
    "logins",
    metadata,
    Column("id", String, primary_key=True),
    Column("organization", String, nullable=False),
    Column("mappings", JSON, nullable=False),
)

keys = Table(
    "keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("digest", LargeBinary, nullable=False),  # SHA-256: the key itself is never stored
    Column("organization", String, nullable=False),
    Column("login", String, nullable=False),
    Column("internal", Boolean, nullable=False),
    Column("revoked", Boolean, nullable=False),
)


def _written(name: str, *columns: Column[str]) -> Table:
    """Make the table of one kind of written record; ``place`` is the order of its list."""
    return Table(
        name,
        metadata,
        Column("place", Integer, primary_key=True),
        Column("id", String, nullable=False, unique=True),
        Column("organization", String, nullable=False),
        *columns,
        Column("document", JSON, nullable=False),  # the record as it is served
        Index(f"{name}_listed", "organization", *(column.name for column in columns), "place"),
    )


notes = _written("notes", Column("customer", String, nullable=False))
replies = _written(
    "replies",
    Column("note", ForeignKey("notes.id", ondelete="CASCADE"), nullable=False),
)
payment_links = _written("payment_links", Column("kind", String, nullable=False))
payment_method_requests = _written("payment_method_requests")

alerts = _written("alerts")
begun = Table("begun", metadata, Column("organization", String, primary_key=True))


class StoreError(ValueError):
    """The store's file cannot be used; the text says why."""


def opened(file: Path | None, seed: int) -> Engine:
    """Open the store of one seed: in memory, or in a file that outlives the process.

    Raises:
        StoreError: the file is no store, cannot be written, or belongs to another seed.
    """
    engine = create_engine(
        f"sqlite:///{file}" if file else "sqlite://",
        poolclass=StaticPool,  # one connection: the event loop is the only one who uses it
        connect_args={"check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: object, _record: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]
        # A killed process loses nothing that it has answered; only a fallen machine could.
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")  # a deleted note takes its replies with it
        cursor.close()

    try:
        with engine.begin() as connection:
            metadata.create_all(connection)
            found = connection.execute(select(about.c.seed)).scalar_one_or_none()
            if found is None:
                connection.execute(insert(about).values(seed=seed))
    except DatabaseError as error:
        engine.dispose()
        raise StoreError(f"the store {file} cannot be used: {error.orig}") from error
    if found not in (None, seed):
        engine.dispose()
        raise StoreError(f"the store {file} belongs to seed {found}, not to {seed}")
    return engine
