"""Clients with a seed: each has lists of its own, as the service's accounts have."""

from pathlib import Path

from tests.sandbox.running import clients_file, started

TWO = """
[[clients]]
id = "north"
secret = "s-north"
actor = "distributor"
seed = 101

[[clients]]
id = "south"
secret = "s-south"
actor = "distributor"
seed = 102

[[clients]]
id = "house"
secret = "s-house"
actor = "distributor"
"""


def test_a_client_with_a_seed_has_lists_of_its_own(tmp_path: Path) -> None:
    file = clients_file(tmp_path, TWO)
    with started("--partners=3", "--usage=20", "--billing=5", "--clients", str(file)) as sandbox:
        seen = {}
        for name in ("north", "south", "house"):
            with sandbox.client(sandbox.token(name, f"s-{name}")) as client:
                answers = [client.get("/v2/usage").json() for _again in range(2)]
            assert answers[0] == answers[1]
            seen[name] = {record["usageId"] for record in answers[0]["data"]}
            assert len(seen[name]) == 20
    assert not seen["north"] & seen["south"]
    assert not seen["house"] & (seen["north"] | seen["south"])
