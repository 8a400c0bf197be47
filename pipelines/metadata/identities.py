"""Rows of `identities`: the account that the credentials of a connection belong to."""

from sqlalchemy.orm import Session

from pipelines.metadata.tables import Identity


def pinned_identity(session: Session, connection: str) -> Identity | None:
    """Return the identity that a connection's data belongs to; None before the first sync."""
    return session.get(Identity, connection)


def pin_identity(session: Session, identity: Identity) -> Identity:
    """Pin the identity of a connection, unless one is pinned; return the pinned one."""
    pinned = session.get(Identity, identity.connection)
    return accept_identity(session, identity) if pinned is None else pinned


def accept_identity(session: Session, identity: Identity) -> Identity:
    """Replace the pinned identity of a connection: a person decided that it is the same."""
    pinned = session.merge(identity)
    session.flush()
    return pinned
