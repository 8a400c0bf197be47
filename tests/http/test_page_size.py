"""A page size that the service refuses: half of it is asked for, once; then a message."""

import pytest

from pipelines.core.errors import PageSizeRefused, UnexpectedAnswer
from pipelines.http.client import ServiceClient
from tests.http.support import Reply, Script, json_reply, page_reply

SAYS_LIMIT = json_reply(400, detail="limit must be at most 5", instance="/v2/usage?offset=20")
FASTAPI = json_reply(422, detail=[{"loc": ["query", "limit"], "msg": "less than or equal to 5"}])
SILENT = Reply(400)
OFFSET = json_reply(400, detail="offset must be less than 1000")
RATE = json_reply(400, detail="The rate limit is no limit")


def limits(script: Script) -> list[str]:
    return [request.url.params["limit"] for _, request in script.requests]


@pytest.mark.parametrize("refusal", [SAYS_LIMIT, FASTAPI, SILENT])
def test_half_of_a_refused_page_is_asked_for_from_then_on(refusal: Reply) -> None:
    script = Script(refusal, page_reply())

    async def ask(client: ServiceClient) -> list[int]:
        answers = [await script.ask_page(client) for _ in range(2)]
        answers.append(await client.page("/v2/billing", 0, 10, repr))
        return [each.limit for each in answers]

    assert script.run(ask) == [5, 5, 10]
    assert limits(script) == ["10", "5", "5", "10"]
    assert [each.limit for each in script.attempts] == [10]


def test_pages_under_way_together_are_halved_once() -> None:
    script = Script(SAYS_LIMIT, SAYS_LIMIT, page_reply())
    script.run(lambda client: script.pages(client, 2))
    assert limits(script) == ["10", "10", "5", "5"]


@pytest.mark.parametrize("refusal", [SAYS_LIMIT, FASTAPI])
def test_a_second_refusal_names_the_setting_and_the_command(refusal: Reply) -> None:
    script = Script(refusal)
    with pytest.raises(PageSizeRefused, match="Pages of 5 records are refused") as caught:
        script.page()
    assert "Set limit in [streams.usage] of settings.toml to fewer than 5" in caught.value.remedy
    assert "`partner-sync check -c acme`" in caught.value.remedy
    assert limits(script) == ["10", "5"]


def test_a_first_page_that_is_refused_in_any_size_is_not_about_the_size() -> None:
    script = Script(SILENT)
    with pytest.raises(UnexpectedAnswer) as caught:
        script.page()
    assert not isinstance(caught.value, PageSizeRefused)
    assert limits(script) == ["10", "5"]


@pytest.mark.parametrize(
    ("refusal", "offset"),
    [(OFFSET, 1000), (OFFSET, 0), (SILENT, 1000), (json_reply(404, detail="limit"), 0)],
)
def test_another_refusal_is_not_taken_for_one_of_the_size(refusal: Reply, offset: int) -> None:
    script = Script(refusal)
    with pytest.raises(UnexpectedAnswer) as caught:
        script.run(lambda client: client.page("/v2/usage", offset, 10, repr))
    assert not isinstance(caught.value, PageSizeRefused)
    assert limits(script) == ["10"]


def test_words_about_the_rate_limit_say_nothing_of_the_size() -> None:
    script = Script(RATE)
    with pytest.raises(UnexpectedAnswer, match="no limit"):
        script.run(lambda client: client.page("/v2/usage", 1000, 10, repr))
