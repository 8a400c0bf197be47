"""The wire's delay: half before the limiter sees a request, half before the answer starts.

Not here: the limiter itself (test_limits).
"""

import time

from tests.sandbox.running import started


def test_each_way_takes_half_the_latency() -> None:
    with started("--latency-ms", "300", "--usage", "1") as running:
        token = running.token()
        with running.client(token) as client:
            sent = time.monotonic()
            client.get("/v2/whoami")
            answered = time.monotonic()
        arrived = running.statistics()["last_admitted"]
    assert 0.15 <= arrived - sent < 0.25
    assert 0.15 <= answered - arrived < 0.25


def test_jitter_comes_on_top_and_differs() -> None:
    with started(
        "--latency-ms", "20", "--jitter-ms", "40", "--rate", "0", "--usage", "1"
    ) as running:
        took = []
        with running.client(running.token()) as client:
            for _ in range(12):
                sent = time.monotonic()
                client.get("/v2/whoami")
                took.append(time.monotonic() - sent)
    assert min(took) >= 0.02
    assert max(took) - min(took) > 0.01
