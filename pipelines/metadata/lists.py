"""Rows of `lists`: what the last scan of a list leaves for the next one."""

import msgspec
from sqlalchemy.orm import Session

from pipelines.core.completeness import ListMemory
from pipelines.metadata.tables import List


def memory_of(session: Session, connection: str, stream: str) -> ListMemory:
    """Return what is known of a list; a list that was never scanned has the default memory."""
    known = session.get(List, (connection, stream))
    if known is None:
        return ListMemory()
    return ListMemory(**{name: getattr(known, name) for name in ListMemory.__struct_fields__})


def remember(
    session: Session, connection: str, stream: str, memory: ListMemory, scan_id: str
) -> None:
    """Keep what a sealed scan says of its list."""
    values = msgspec.structs.asdict(memory)
    session.merge(List(connection=connection, stream=stream, scan_id=scan_id, **values))
    session.flush()
