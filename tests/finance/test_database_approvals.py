"""A month is approved by another user of the PostgreSQL server that has the metadata database."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.finance.approvals import take_over
from pipelines.finance.approve import approve_copy
from pipelines.finance.books import make_books
from pipelines.finance.close import list_closes, prepare_close
from pipelines.finance.reconcile.close_copy import MANIFEST
from pipelines.finance.signing import Signing
from pipelines.metadata.engine import Metadata
from tests.reconcile.months import SEPTEMBER, publish_months
from tests.versions.homes import Stores

pytest_plugins = ["tests.postgresql"]
ROLES = ("home", "approver", "stranger", "creator")
SAID = Signing("", "known since August")


def url_of(server: Any, role: str) -> str:
    return f"postgresql://{role}@/approvals?host={server.folder}"


@pytest.fixture(scope="module")
def roles(postgresql: Any) -> Iterator[Any]:
    """Users of the server, and a database of the home; give a connection of its administrator."""
    with psycopg.connect(postgresql.url, autocommit=True) as administrator:
        for role in ROLES:
            administrator.execute(f"CREATE ROLE {role} LOGIN")
        administrator.execute("ALTER ROLE creator CREATEROLE")
        administrator.execute("CREATE DATABASE approvals OWNER home")
        yield administrator


@pytest.fixture
def prepared(postgresql: Any, roles: Any, tmp_path: Path) -> Iterator[Stores]:
    """A home on the server, with a prepared month."""
    assert roles
    with psycopg.connect(url_of(postgresql, "home"), autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
    opened = Stores.open(tmp_path / "home")
    opened.metadata.close()
    url = url_of(postgresql, "home")
    settings = {"metadata_url": url, "approvers": ("approver", "creator", "home")}
    with closing(Metadata.open(opened.home.metadata_file, url)) as metadata:
        stores = replace(opened.changed(**settings), metadata=metadata)
        publish_months(stores)
        prepare_close(stores, SEPTEMBER, SAID)
        yield stores


def approve(stores: Stores, server: Any, role: str, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setenv("APPROVER_URL", url_of(server, role))
    return approve_copy(SEPTEMBER, home=stores.home, database="APPROVER_URL")


def states(stores: Stores) -> list[str]:
    return [row["state"] for row in list_closes(stores)]


@pytest.mark.long
def test_another_user_of_the_server_approves(
    prepared: Stores, postgresql: Any, roles: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not prepared.home.inbox.exists()
    with pytest.raises(ConfigurationError, match="setting approvers names nobody"):
        prepare_close(prepared.changed(approvers=()), SEPTEMBER, SAID)
    manifest = json.loads((prepared.home.closes / "2026-09" / "001" / MANIFEST).read_bytes())
    assert manifest["preparer_role"] == "home"
    with pytest.raises(ConfigurationError, match="names the variable with its URL in --database"):
        approve_copy(SEPTEMBER, home=prepared.home)
    for role, said in (
        ("home", "home prepared it"),
        ("creator", "could write what another user approves"),
        ("postgres", "could write what another user approves"),
        ("nobody-there", "cannot be left in the database that `APPROVER_URL` names"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            approve(prepared, postgresql, role, monkeypatch)
    assert approve(prepared, postgresql, "stranger", monkeypatch)["approver"] == "stranger"
    assert take_over(prepared) == []  # it is not in setting approvers
    assert approve(prepared, postgresql, "approver", monkeypatch)["approver"] == "approver"
    refuse_who_could_be_another(prepared, roles)
    # What a stranger leaves does not keep the approval out.
    approve(prepared, postgresql, "stranger", monkeypatch)
    assert take_over(prepared) == ["2026-09 (001), approved by approver, is closed."]
    make_books(prepared)
    (row,) = list_closes(prepared)
    assert (row["state"], row["reviewer"], row["problem"]) == ("closed", "approver", None)
    # The approver owns the evidence, and alone can delete it.
    with_server(
        postgresql,
        "approver",
        "SELECT lo_unlink(m.oid) FROM pg_largeobject_metadata m "
        "JOIN pg_roles r ON r.oid = m.lomowner WHERE rolname = 'approver'",
    )
    (row,) = list_closes(prepared)
    assert "The server has no approval of 2026-09 by approver any more." in row["problem"]


def with_server(server: Any, role: str, statement: str) -> None:
    with psycopg.connect(url_of(server, role), autocommit=True) as connection:
        connection.execute(statement)


def refuse_who_could_be_another(stores: Stores, administrator: Any) -> None:
    """Require that no month is closed while the home's user could have written the approval."""
    for give, take in (
        ("GRANT approver TO home", "REVOKE approver FROM home"),
        ("ALTER ROLE home CREATEROLE", "ALTER ROLE home NOCREATEROLE"),
        ("ALTER ROLE home SUPERUSER", "ALTER ROLE home NOSUPERUSER"),
        ("ALTER ROLE approver SUPERUSER", "ALTER ROLE approver NOSUPERUSER"),
    ):
        administrator.execute(give)
        assert take_over(stores) == [], give
        administrator.execute(take)
    administrator.execute("ALTER ROLE home CREATEROLE")
    with pytest.raises(ConfigurationError, match="nobody could say who approves"):
        prepare_close(stores, SEPTEMBER, SAID)
    administrator.execute("ALTER ROLE home NOCREATEROLE")
    assert states(stores) == ["prepared"]
