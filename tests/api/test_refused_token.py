"""Tokens that are refused and tokens that are shared: renewed as often as it helps, never more."""

import asyncio
import json
from itertools import pairwise

import pytest

from pipelines.api.token import SIGNATURES
from tests import virtual
from tests.api.provider import SECRET, VARIABLE, Provider, together


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.mark.parametrize("count", [1, 2, 20])
def test_a_refused_token_is_renewed_once_for_all(count: int) -> None:
    provider = Provider(took=0.5, refused={"t1"})

    async def main() -> list[int]:
        return await together(provider.client(), count)

    assert virtual.run(main()) == [200] * count
    assert provider.served == ["t1"] * count + ["t2"] * count
    assert len(provider.asked) == 2


def test_a_late_401_does_not_cost_the_token_that_another_renewed() -> None:
    provider = Provider(took=0.5, refused={"t1"})

    async def main() -> list[int]:
        http = provider.client()
        early = asyncio.create_task(together(http, 1))
        await asyncio.sleep(0.9)
        provider.took = 5
        late = asyncio.create_task(together(http, 1))
        await asyncio.sleep(0.05)
        provider.took = 0.1
        return await early + await late

    assert virtual.run(main()) == [200, 200]
    assert sorted(provider.served) == ["t1", "t1", "t2", "t2"]
    assert len(provider.asked) == 2


def test_a_second_401_is_the_answer_and_the_token_is_not_used_again() -> None:
    provider = Provider(refused={"t1", "t2"})

    async def main() -> list[int]:
        http = provider.client()
        return await together(http, 1) + await together(http, 1)

    assert virtual.run(main()) == [401, 200]
    assert provider.served == ["t1", "t2", "t3"]


def test_a_token_that_came_too_late_is_no_verdict_on_the_next() -> None:
    """Its request waited for the budget or the machine for longer than the token lived."""
    provider = Provider(expires_in=10, took=12, refused={"t1", "t2"})

    async def main() -> list[int]:
        return await together(provider.client(), 1)

    assert virtual.run(main()) == [200]
    assert provider.served == ["t1", "t2", "t3"]


def test_a_token_that_ended_within_its_last_second_is_no_verdict_on_the_next() -> None:
    """It ends by the whole seconds of its provider's clock: a life of 2 s is one of 1 to 2."""
    provider = Provider(expires_in=2, took=0.6, refused={"t1", "t2"})

    async def main() -> list[int]:
        return await together(provider.client(), 1)

    assert virtual.run(main()) == [200]
    assert provider.served == ["t1", "t2", "t3"]


def test_at_most_one_token_call_a_second() -> None:
    provider = Provider(refused={f"t{number}" for number in range(100)})

    async def main() -> None:
        http = provider.client()
        for _ in range(4):
            await together(http, 3)

    virtual.run(main())
    moments = [moment for moment, _ in provider.asked]
    assert len(moments) > 5
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) >= 1 - 1e-6


def test_twenty_that_are_refused_twice_cost_two_tokens() -> None:
    provider = Provider(took=0.5, refused={"t1", "t2", "t3"})

    async def main() -> list[int]:
        return await together(provider.client(), 20)

    assert virtual.run(main()) == [401] * 20
    assert len(provider.asked) == 2


def test_a_request_outlives_many_tokens_that_others_used() -> None:
    """A token that opened something is no wrong token: it is renewed as often as it takes."""
    provider = Provider()

    async def main() -> list[int]:
        http = provider.client()
        answers = []
        for number in range(1, 6):
            answers += await together(http, 1)
            provider.refused.add(f"t{number}")
        return answers + await together(http, 2)

    assert virtual.run(main()) == [200] * 7
    assert len(provider.asked) == 6


def test_a_token_that_always_comes_late_is_no_endless_loop() -> None:
    """Each token opens something for another and is refused to this request."""
    provider = Provider()

    async def main() -> int:
        http = provider.client()
        return (await http.get("/late")).status_code

    assert virtual.run(main()) == 401
    assert len(provider.asked) == SIGNATURES


def test_connections_of_one_client_share_its_token() -> None:
    """One token per provider, client and audience, however many ask: on one event loop."""
    provider = Provider(took=0.5)

    async def main() -> list[list[int]]:
        first, second = provider.client(), provider.client()
        other = provider.client(audience="another-api")
        return await asyncio.gather(*(together(each, 3) for each in (first, second, other)))

    assert virtual.run(main()) == [[200] * 3] * 3
    assert [json.loads(request.content)["audience"] for _, request in provider.asked] == [
        "the-api",
        "another-api",
    ]


def test_a_run_begins_with_a_token_of_its_own() -> None:
    provider = Provider()
    for number in (1, 2):
        assert virtual.run(together(provider.client(), 1)) == [200]
        assert len(provider.asked) == number


def test_a_token_goes_to_its_own_service_only() -> None:
    provider = Provider()

    async def main() -> list[str]:
        http = provider.client()
        for url in ("https://service/", "https://elsewhere/", "http://service/"):
            await http.get(url)
        return provider.served

    assert virtual.run(main()) == ["t1", "", ""]
