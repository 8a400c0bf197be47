"""Approvals by another user of the PostgreSQL server that has the metadata database.

Here: how a user without any right to the home's tables leaves an approval on the server, and how
the home reads it. Not here: what is approved (approve), what it closes (approvals).

An approval is a large object. Every user who may connect can create one, the server keeps who owns
it, and only a member of another role can give one to that role. So who approved is the owner. The
home's user is refused where it could become another one: as a superuser, with CREATEROLE, or as a
member of the owner's role; and where the server lets everybody write large objects of others.
"""

import os
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from pipelines.core.errors import ConfigurationError
from pipelines.core.text import printable
from pipelines.metadata.server import postgresql_engine
from pipelines.versions.stores import Stores

LARGEST_NOTE: Final = 10_000  # bytes
MOST_NOTES: Final = 1_000  # that are read: the newest ones
WHO: Final = """
SELECT
    roles.rolname,
    roles.rolsuper OR roles.rolcreaterole OR current_setting('lo_compat_privileges')::BOOLEAN
        AS is_anybody
FROM pg_roles AS roles
WHERE roles.rolname = session_user
"""
CREATE: Final = "SELECT lo_from_bytea(0, :content)"
GRANT: Final = "GRANT SELECT ON LARGE OBJECT {} TO PUBLIC"
# What everybody may read: the others are no approvals, and could not be read.
NOTES: Final = """
SELECT
    owners.rolname AS role, owners.rolsuper AS is_superuser,
    pg_has_role(session_user, owners.oid, 'MEMBER') AS is_home,
    lo_get(objects.oid, 0, :largest) AS content
FROM pg_largeobject_metadata AS objects
JOIN pg_roles AS owners ON owners.oid = objects.lomowner
WHERE EXISTS (
    SELECT FROM aclexplode(objects.lomacl) AS granted
    WHERE granted.grantee = 0 AND granted.privilege_type = 'SELECT'
)
ORDER BY objects.oid DESC
LIMIT :most
"""
RIGHTS: Final = "(superuser, CREATEROLE, or lo_compat_privileges)"
ANYBODY: Final = f"the home's user of the database could write what another one approves {RIGHTS}"


class Approval(msgspec.Struct, frozen=True):
    """What an approval says."""

    month: str
    number: int
    manifest_sha256: str


@dataclass(frozen=True)
class Found:
    """An approval on the server, the role that owns it, and why it counts for nothing, if so."""

    approval: Approval
    role: str
    refusal: str


def home_role(stores: Stores) -> str | None:
    """Return the home's user of the server; None where the metadata database is a file.

    Raises ConfigurationError for one that can become any other user.
    """
    if stores.settings.metadata_url is None:
        return None
    role, is_anybody = _who(stores)
    if is_anybody:
        raise ConfigurationError(
            f"No month can be prepared: {ANYBODY}, so nobody could say who approves. Nothing was "
            "written.",
            "Let metadata_url name a user without these rights.",
        )
    return role


def put_approval(variable: str, approval: Approval, preparer: str) -> str:
    """Leave an approval on the server; return who approves.

    `variable`: of the environment, with the URL of the database and the approver's own user. Raises
    ConfigurationError, also for the user who prepared.
    """
    url = os.environ.get(variable, "")
    if not url:
        raise ConfigurationError(
            f"The environment has no variable `{printable(variable, 40)}`. Nothing was approved.",
            "Put the URL of the database with your own user into it: "
            "postgresql://user:password@host/database.",
        )
    try:
        engine = postgresql_engine(url, "READ COMMITTED", "")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"`{printable(variable, 40)}` is not a PostgreSQL URL, or the package psycopg is not "
            "installed. Nothing was approved.",
            "Set it to postgresql://user:password@host/database, and install `psycopg`.",
        ) from error
    try:
        with engine.begin() as connection:
            role, is_anybody = connection.execute(text(WHO)).one()
            why = _why_not(role, preparer, is_anybody=is_anybody)
            if why:
                raise ConfigurationError(
                    f"The copy cannot be approved: {why}. Nothing was approved.",
                    "Another user of the database approves, who is not its administrator.",
                )
            content = msgspec.json.encode(approval)
            number = connection.execute(text(CREATE), {"content": content}).scalar_one()
            connection.execute(text(GRANT.format(int(number))))
    except SQLAlchemyError as error:
        raise ConfigurationError(
            f"The approval cannot be left in the database that `{printable(variable, 40)}` names: "
            f"{printable(getattr(error, 'orig', None) or type(error).__name__)}. Nothing was "
            "approved.",
            "Ask who runs the server for a user who may connect to the database.",
        ) from error
    finally:
        engine.dispose()
    return str(role)


def read_approvals(stores: Stores) -> list[Found]:
    """Return the approvals that users of the server left there. Raises StorageFailed."""
    preparer, is_anybody = _who(stores)
    bound = {"largest": LARGEST_NOTE, "most": MOST_NOTES}
    with stores.metadata.transaction() as session:
        rows = session.execute(text(NOTES), bound).mappings().all()
    found = []
    for row in rows:
        try:
            approval = msgspec.json.decode(row["content"], type=Approval)
        except (msgspec.DecodeError, RecursionError):
            continue  # another program's
        refusal = _why_not(row["role"], preparer, is_anybody=row["is_superuser"])
        if row["is_home"]:
            refusal = f"the home's user of the database is {row['role']}, or a member of this role"
        if is_anybody:
            refusal = ANYBODY
        found.append(Found(approval, row["role"], refusal))
    return found


def _who(stores: Stores) -> tuple[str, bool]:
    with stores.metadata.transaction() as session:
        role, is_anybody = session.execute(text(WHO)).one()
    return str(role), bool(is_anybody)


def _why_not(role: Any, preparer: str, *, is_anybody: bool) -> str:
    """Return why a user of the server cannot approve what another one prepared; empty: it can."""
    if is_anybody:
        return f"{role} could write what another user approves {RIGHTS}"
    if role == preparer:
        return f"{role} prepared it"
    return ""
