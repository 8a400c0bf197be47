"""Connections: adds one, opens its service, and confirms whose account it is."""

import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from sqlalchemy import update

from pipelines.app.session import AppSession
from pipelines.config import connections
from pipelines.config.connections import PARTNER_FIELDS, Connection, check_field
from pipelines.config.home import Home
from pipelines.config.settings import Settings
from pipelines.core import loop
from pipelines.core.errors import PartnerSyncError
from pipelines.core.files import write_durably
from pipelines.http.client import ServiceClient
from pipelines.http.identity import ServiceIdentity, account_key, actor_key, service_identity
from pipelines.metadata.decisions import add_decision
from pipelines.metadata.tables import Identity, RateLimitSlot
from pipelines.rate_limit.limiter import LimitOptions, RateLimiter, end_pause

__all__ = ["check_field"]
ASKED = ("base_url", *PARTNER_FIELDS, "secret")
KEY_EXAMPLE = '\n# [streams.usage]\n# key = "usageId"\n'


def questions(options: Mapping[str, Any]) -> dict[str, str]:
    """Return a question for each field that a connection needs and that `options` lack."""
    given = {field for field, value in options.items() if value}
    if options["secret_file"] or options["secret_command"]:
        given.add("secret")
    if options["surface"] == "merchant":
        given.update(PARTNER_FIELDS)
    known = Connection.model_fields
    return {field: str(known[field].description) for field in ASKED if field not in given}


def add_connection(name: str, options: Mapping[str, Any]) -> list[str]:
    """Write commented files and a connection; return what was written, in sentences."""
    home = Home.from_environment().prepare()
    known = Connection.model_fields
    fields = {field: options[field] for field in known if field != "name" and options.get(field)}
    if not home.connections_file.exists():
        write_durably(home.connections_file, commented(Connection).encode())
    if not home.settings_file.exists():
        write_durably(home.settings_file, commented_settings().encode())
    connections.add_connection(home.connections_file, name, fields)
    return [
        f"Added connection `{name}` to {home.connections_file}.",
        f"Every setting is explained in {home.settings_file}.",
    ]


def commented_settings() -> str:
    """Return a settings file in which every setting is explained and has its default."""
    return commented(Settings, {"home", "streams"}) + KEY_EXAMPLE


def commented(model: type[BaseModel], skipped: Collection[str] = ()) -> str:
    """Return a TOML file with each field of a model as a comment: description and default."""
    lines = ["# Remove the first # of a line to set it."]
    for name, field in model.model_fields.items():
        if field.description and name not in skipped:
            value = '"..."'
            if field.default not in (None, PydanticUndefined):
                value = json.dumps(field.default, default=str)
            lines += ["", f"# {field.description}", f"# {name} = {value}"]
    lines.append("")
    return "\n".join(lines)


@asynccontextmanager
async def open_service(
    session: AppSession, connection: Connection, *, accept_reason: str = ""
) -> AsyncIterator[ServiceClient]:
    """Yield a client for the account of the data loaded before; pin it the first time.

    `accept_reason` is why a person accepts another account; without a reason, another account
    raises PartnerSyncError.
    """
    # The names of some actors need it, and are asked for where nothing can wait.
    if connection.secret_command:
        await connection.read_secret_beside_others()
    actor = limiter_actor(session, connection)
    limiter = _limiter(session, connection, actor)
    # A redactor of its own: answers are not searched for the credentials of other connections.
    redactor = session.redactor.part()
    client = ServiceClient(connection, session.settings, limiter, redactor, session.clock)
    async with client.http:
        await _confirm_account(session, client, accept_reason)
        actor_now = limiter_actor(session, connection)
        if actor_now != actor:
            # The account is known from now on. All processes that use it share its limit, so the
            # request that asked for it counts there too.
            with session.metadata.transaction() as db:
                moved = update(RateLimitSlot).where(RateLimitSlot.actor == actor)
                db.execute(moved.values(actor=actor_now))
            client.limiter = _limiter(session, connection, actor_now)
        yield client


def _limiter(session: AppSession, connection: Connection, actor: str) -> RateLimiter:
    options = LimitOptions(
        max_requests_per_window=connection.max_requests_per_window,
        request_timeout_seconds=session.settings.request_timeout_seconds,
        connection=connection.name,
    )
    return RateLimiter(session.metadata, actor, session.clock, options)


async def _confirm_account(session: AppSession, client: ServiceClient, accept_reason: str) -> None:
    """Compare the account with the pinned one; pin it where there is none, or if it is accepted."""
    connection = client.connection
    whoami = dict[str, Any]()
    # The merchant surface has no whoami; there the connection's name is the identity.
    if connection.surface != "merchant":
        whoami = await client.read_object("/v2/whoami")
    account = service_identity(connection, whoami, client.claims())
    actor = str(account.get("actor", ""))
    if connection.surface == "merchant":
        actor = account_key(connection, None)
    with session.metadata.transaction() as db:
        pinned = db.get(Identity, connection.name)
        if pinned and pinned.identity == account:
            pinned.actor = actor  # an API key may be replaced by another one
            return
        if pinned and not accept_reason:
            raise PartnerSyncError(
                f"The credentials of connection `{connection.name}` may belong to a different "
                f"account than the data loaded before: {account.change_since(pinned.identity)}. "
                "Nothing was read. Analysts still see the published version.",
                "Correct the credentials, or add a connection with another name. If it is the same "
                "account under a new identity, run "
                f'`partner-sync connections accept {connection.name} --reason "..."`.',
            )
        if accept_reason:
            decision = session.decision("accept_identity", connection.name, accept_reason)
            decision.details = {"before": pinned and pinned.identity, "after": account}
            add_decision(db, decision)
        row = Identity(
            connection=connection.name,
            base_url=connection.base_url,
            actor=actor,
            identity=account,
            pinned_at=session.clock.utc_now(),
        )
        db.merge(row)


def account_of(session: AppSession, name: str) -> ServiceIdentity | None:
    """Return the account that the data of a connection belongs to; None before the first sync."""
    with session.metadata.transaction() as db:
        pinned = db.get(Identity, name)
    return ServiceIdentity(pinned.identity) if pinned else None


def limiter_actor(session: AppSession, connection: Connection) -> str:
    """Return the actor under which the requests of a connection are counted."""
    return actor_key(connection, account_of(session, connection.name))


def accept_account(session: AppSession, name: str, reason: str) -> str:
    """Accept who the service says a connection is now; return that. Raises ServiceError."""
    connection = session.settings.connection(name)
    before = account_of(session, name)

    async def ask() -> None:
        async with open_service(session, connection, accept_reason=reason):
            # Opening it accepts the account.
            pass

    loop.run(ask())
    after = account_of(session, name)
    if after == before:
        return f"Connection `{name}` is {after}, as before. Nothing was changed."
    return f"Accepted: connection `{name}` is {after}."


def forget_pause(session: AppSession, name: str) -> str:
    """Forget a Retry-After that a connection got; return what was done, as a sentence."""
    end_pause(session.metadata, limiter_actor(session, session.settings.connection(name)))
    return (
        f"Connection `{name}` may send requests again. If the service still asks for a pause, "
        "the next sync reports it."
    )


def list_connections(session: AppSession) -> list[dict[str, Any]]:
    """Return connections; secrets are named, never shown."""
    rows = []
    for name, connection in session.settings.connections().items():
        rows.append(
            {
                "connection": name,
                **connection.model_dump(include={"surface", "base_url", "client_id"}),
                "secret": connection.secret_place,
                "streams": [stream.name for stream in session.settings.streams_of(connection)],
            }
        )
    return rows
