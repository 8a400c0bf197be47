"""What makes up an identity: what tells callers apart, and nothing that changes by itself."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import identity
from pipelines.errors import ConfigurationError
from pipelines.settings import Connection, Secret

ACME = Connection("acme", "https://service:8443/x", "https://id", "api", "us", Secret("A_B"))
SAYS: dict[str, Any] = {"actor": "partner", "account": {"id": 7, "name": "Acme"}}

SAME = [
    {"scopes": ["usage:read"]},
    {"scope": "usage:read billing:read"},
    {"permissions": {"usage": "all"}},
    {"iat": 1790000000, "exp": 1790003600},
    {"lastSeenAt": "yesterday", "server_time": "noon"},
    {"now": "2026-11-21T02:00:00Z", "today": "2026-11-21"},
    {"requestId": "r-1", "trace": {"id": "t-1"}, "jti": "j-1", "tokenId": "k"},
    {"requests": 12, "quota": 0.5, "enabled": True, "limit": None},
    {"roles": ["admin"], "devices": [{"id": "d"}]},
]
OTHER = [
    {"actor": "distributor"},
    {"account": {"id": 8, "name": "Acme"}},
    {"account": {"id": 7, "name": "Other"}},
    {"account": {"id": "7", "name": "Acme"}},
    {"subject": "somebody"},
    {"format": "a text whose name only ends like a time's"},
]


def digest(says: dict[str, Any], connection: Connection = ACME, **claims: str) -> str:
    return identity.of_whoami(connection, says, claims).digest


@pytest.mark.parametrize("more", SAME, ids=str)
def test_what_changes_by_itself_is_no_part_of_it(more: dict[str, Any]) -> None:
    assert digest(SAYS | more) == digest(SAYS)


@pytest.mark.parametrize("other", OTHER, ids=str)
def test_what_tells_callers_apart_is(other: dict[str, Any]) -> None:
    assert digest(SAYS | other) != digest(SAYS)


def test_order_does_not_matter_and_the_host_does() -> None:
    assert digest(dict(reversed(SAYS.items()))) == digest(SAYS)
    assert digest(SAYS, replace(ACME, base_url="https://elsewhere:8443/x")) != digest(SAYS)
    assert digest(SAYS, replace(ACME, base_url="https://service/y")) == digest(SAYS)


def test_a_client_or_secret_may_be_rotated_where_whoami_does_not_name_it() -> None:
    rotated = replace(ACME, client_id="new", secret=Secret("C_D"))
    assert digest(SAYS, rotated, sub="new", actor="partner") == digest(SAYS, sub="us")


def test_where_whoami_says_nothing_the_token_speaks() -> None:
    ours, theirs = (digest({"iat": 1}, sub=who, actor="partner") for who in ("us", "them"))
    assert ours != theirs
    assert identity.of_whoami(ACME, {}, {"sub": "us"}).words == "sub us"
    assert identity.of_whoami(ACME, {}, {}).words == "unnamed"


def test_paths_in_the_settings_decide_alone() -> None:
    own = replace(ACME, whoami=("account.id", "scopes"))
    says = SAYS | {"scopes": ["a"]}
    assert digest(says | {"actor": "distributor"}, own) == digest(says, own)
    assert digest(says | {"scopes": ["b"]}, own) != digest(says, own)
    assert identity.of_whoami(own, says, {}).words == "account.id 7, scopes ['a']"


@pytest.mark.parametrize("path", ["account.number", "account.id.x", "nobody"])
def test_a_path_that_is_not_in_the_answer_is_named(path: str) -> None:
    words = f"connection acme, whoami: {path} is not in the answer of /v2/whoami, which has actor"
    with pytest.raises(ConfigurationError, match=words):
        digest(SAYS, replace(ACME, whoami=(path,)))


def test_words_are_fit_for_a_terminal() -> None:
    shown = identity.of_whoami(ACME, {"actor": "a\x1b[31m\nb", "long": "x" * 999}, {}).words
    assert shown.isprintable()
    assert len(shown) <= 200


def test_a_connection_without_whoami_is_its_host_and_name() -> None:
    shop = replace(ACME, name="shop", surface="merchant")
    assert (
        identity.of_name(shop).digest
        == identity.of_name(replace(shop, secret=Secret("C_D"))).digest
    )
    assert identity.of_name(shop).digest != identity.of_name(ACME).digest
    assert str(identity.of_name(shop)) == "service: connection shop"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_anything_has_an_identity(says: dict[str, Any]) -> None:
    assert len(digest(says)) == 64


def test_an_answer_as_deep_as_it_gets() -> None:
    deep: dict[str, Any] = {"actor": "x"}
    for _ in range(900):
        deep = {"in": deep}
    assert len(digest(deep)) == 64
