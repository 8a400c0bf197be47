"""What headers say of the rate limit, readable or not."""

import pytest

from pipelines.rate_limit.headers import read_rate_headers

LIMIT, REMAINING, RESET = "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"
DATE = "Mon, 21 Sep 2026 14:13:20 GMT"

STATED: list[tuple[int, int | None, dict[str, str], object]] = [  # `known` is the actor's limit
    (200, 5, {LIMIT: "5", REMAINING: "3"}, (5, 3)),
    (200, 5, {LIMIT: " 5 ", REMAINING: "0"}, (5, 0)),
    (200, 5, {LIMIT: "5"}, (5, None)),
    (200, 5, {REMAINING: "3"}, (None, None)),
    (200, 5, {LIMIT: "5", REMAINING: "6"}, (5, None)),
    (200, 5, {LIMIT: "5", REMAINING: "3.5"}, (5, None)),
    (200, 5, {LIMIT: "0", REMAINING: "0"}, (None, None)),
    (200, 5, {LIMIT: "-5"}, (None, None)),
    (200, 5, {LIMIT: "\uff15"}, (None, None)),
    (200, 5, {LIMIT: "1000000", REMAINING: "3"}, (100, 3)),
    (200, 5, {LIMIT: "1000000", REMAINING: "900000"}, (100, 900_000)),
    (200, 5, {LIMIT: "9" * 5000}, (None, None)),
    (200, 5, {}, (None, None)),
    *[  # no Reset changes anything
        (200, 5, {LIMIT: "5", REMAINING: "3", RESET: reset}, (5, 3))
        for reset in ("1790000001", "1790000001000", "1", "-7", DATE, "soon", "")
    ],
    (200, None, {LIMIT: "5"}, (5, None)),
    (403, None, {LIMIT: "5"}, (5, None)),
    (401, 5, {LIMIT: "1"}, None),
    (500, 5, {}, None),
    (429, 5, {LIMIT: "5"}, (5, None)),
    (429, 5, {LIMIT: "1"}, None),
    (429, None, {LIMIT: "1"}, None),
    (429, 1, {LIMIT: "1"}, (1, None)),
    (429, None, {}, (None, None)),
    (429, 100, {LIMIT: "1000"}, (100, None)),
]


@pytest.mark.parametrize(("status", "known", "headers", "said"), STATED)
def test_what_an_answer_states_of_the_actors_limit(
    status: int, known: int | None, headers: dict[str, str], said: object
) -> None:
    assert read_rate_headers(status, headers, known) == said
