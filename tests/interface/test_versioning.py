"""Chapter 9 of the interface, "Versioning": the prefix, and the description's authority."""

import httpx
import pytest

from tests.interface.calling import Surfaces, assert_problem
from tests.interface.routes import LISTS, READS, bounds
from tests.sandbox.schema import faults

OPERATIONAL = ("/healthz", "/readiness", "/docs/", "/oauth/", "/.well-known/")


def test_9_1_every_business_route_carries_the_prefix(whole: Surfaces) -> None:
    paths = [path for path in whole.described()["paths"] if not path.startswith(OPERATIONAL)]
    assert set(READS) <= set(paths)
    assert all(path.startswith("/v2/") for path in paths)


@pytest.mark.parametrize("path", LISTS)
def test_9_2_the_description_has_the_bounds_that_are_held(whole: Surfaces, path: str) -> None:
    told = {one["name"]: one["schema"] for one in whole.operation("get", path)["parameters"]}
    limit, offset = told["limit"], told["offset"]
    assert (limit["default"], limit["minimum"], limit["maximum"]) == (
        bounds(path)[0],
        1,
        bounds(path)[1],
    )
    assert (offset["default"], offset["minimum"]) == (0, 0)
    for number, status in ((limit["maximum"], 200), (limit["maximum"] + 1, 400), (0, 400)):
        assert whole.get(path, limit=number).status_code == status


@pytest.mark.parametrize("path", READS)
def test_9_3_the_description_has_the_schemas_that_are_served(whole: Surfaces, path: str) -> None:
    document = whole.described()
    success = document["paths"][path]["get"]["responses"]["200"]
    schema = success["content"]["application/json"]["schema"]
    assert not list(faults(document, schema, whole.page(path)))


def test_9_4_the_description_lies_under_docs_for_programs_and_for_people(
    nobody: httpx.Client,
) -> None:
    assert nobody.get("/docs/openapi.json").json()["openapi"].startswith("3.1")
    page = nobody.get("/docs/").text
    assert "<html" in page
    assert "/v2/usage" in page


@pytest.mark.parametrize("version", ["v1", "v3", "V2"])
def test_9_5_there_is_no_other_version_and_nothing_is_deprecated(
    whole: Surfaces, version: str
) -> None:
    assert_problem(whole.bearer.get(f"/{version}/whoami"), 404)
    assert "deprecated" not in str(whole.described())
    assert whole.described()["info"]["version"] == "v2"
