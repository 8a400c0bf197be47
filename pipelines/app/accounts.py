"""What a person decides about a connection: a new identity of its account, a pause that ended."""

import asyncio

from pipelines.app.connect import limiter_actor, open_client, read_identity
from pipelines.app.decide import Verdict
from pipelines.app.session import AppSession
from pipelines.core.clock import utc_now
from pipelines.metadata import decisions, identities
from pipelines.metadata.tables import Decision
from pipelines.rate_limit.limiter import forget_block


def accept_account(session: AppSession, name: str, verdict: Verdict) -> str:
    """Accept who the service says a connection is now; return that. Raises ServiceError."""
    return asyncio.run(_accept(session, name, verdict))


async def _accept(session: AppSession, name: str, verdict: Verdict) -> str:
    connection = session.settings.connection(name)
    async with open_client(session, connection, limiter_actor(session, connection)) as client:
        found, row = await read_identity(session, connection, client)
    with session.metadata.transaction() as db:
        before = identities.pinned_identity(db, name)
        if before is not None and before.identity == found.members:
            return f"Connection `{name}` is {found}, as before. Nothing was changed."
        decision = Decision(
            decided_at=utc_now(session.clock),
            person=verdict.person,
            kind="accept_identity",
            subject=name,
            reason=verdict.reason,
            details={"before": before.identity if before else None, "after": found.members},
        )
        decisions.add_decision(db, decision)
        identities.accept_identity(db, row)
    return f"Accepted: connection `{name}` is {found}."


def forget_pause(session: AppSession, name: str) -> str:
    """Forget a Retry-After that a connection got; return what was done, as a sentence."""
    connection = session.settings.connection(name)
    forget_block(session.metadata, limiter_actor(session, connection))
    return (
        f"Connection `{name}` may send requests at once. If the service still asks for a pause, "
        "the next request says so."
    )
