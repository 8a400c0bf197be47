"""Pages of docs as Swagger UI, Redoc and others write them, and what they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.api import links

PAGES = [
    ('<a href="/docs/openapi.json">description</a>', ("/docs/openapi.json",)),
    ("<A HREF=openapi.json>", ("openapi.json",)),
    ('<link rel="service-desc" href="v2.json?raw=1&amp;x=2">', ("v2.json?raw=1&x=2",)),
    ('<redoc spec-url="/docs/swagger.json"></redoc>', ("/docs/swagger.json",)),
    ('<rapi-doc spec-url = "/docs/v2/api-docs">', ("/docs/v2/api-docs",)),
    ('<elements-api apiDescriptionUrl="description"/>', ("description",)),
    ("<script id='api-reference' data-url='/docs/spec'></script>", ("/docs/spec",)),
    ('<script>SwaggerUIBundle({ url: "/docs/a.json", dom_id: "#ui" })</script>', ("/docs/a.json",)),
    ('<script>x = {"urls":[{"url":"b.json","name":"B"}]}</script>', ("b.json",)),
    ("<script>Redoc.init('c.json', {})</script>", ("c.json",)),
    ('<script>const specUrl = "d"; url: "/e/openapi"</script>', ("/e/openapi", "d")),
    ('<a href="/docs/openapi.yaml">', ()),
    ('<a href="/docs/guide.html"><a href="#openapi"><link href="swagger-ui.css">', ()),
    ('<script src="swagger-initializer.js"></script>', ()),
    ('<a href="a.json"><a href="a.json">', ("a.json",)),
    ("", ()),
]


@pytest.mark.parametrize(("html", "addresses"), PAGES)
def test_what_a_page_leads_to(html: str, addresses: tuple[str, ...]) -> None:
    assert links.found(html) == addresses


def test_scripts_that_may_name_a_description() -> None:
    html = '<script src="./swagger-ui-bundle.js"></script><script src="./swagger-initializer.js">'
    assert links.scripts(html) == ("./swagger-initializer.js",)


HOSTILE = [
    "<!--",
    "<a ",
    "</",
    '<a href="',
    "<script>",
    "<a b='",
    "url:",
    "url: '",
    "&#",
    "<a x=1 ",
]


@pytest.mark.parametrize("unit", HOSTILE)
@pytest.mark.timeout(10)
def test_a_hostile_page_of_a_megabyte_does_not_hold_anybody_up(unit: str) -> None:
    html = unit * (1024 * 1024 // len(unit))
    assert links.found(html) == ()
    assert links.scripts(html) == ()


@given(st.text(st.sampled_from(list("<>a/='\" hrefscript-url:#.json"))))
def test_any_page_is_read(html: str) -> None:
    assert all(each and each[0] != "#" for each in links.found(html))
