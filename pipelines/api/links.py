"""Where a page of HTML docs says that its interface description is.

Links, attributes of the elements that show descriptions, and what their scripts are given, as
Swagger UI and Redoc write it. Addresses are returned as written, the likeliest first. Patterns of
bounded length rather than html.parser, which needs minutes for what a hostile page can hold.
"""

import re
from collections.abc import Iterable
from html import unescape

TAG = re.compile(r"<([a-zA-Z][\w-]{0,40})(\s[^<>]{0,4000})>")
ATTRIBUTE = re.compile(
    r"""([\w-]{1,40})\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000}))"""
)
# Attributes that name a description and nothing else.
NAMED = {"spec-url", "data-url", "data-spec-url", "apidescriptionurl"}
INLINE = re.compile(
    r"""(?:\b(?:url|spec-?url)["']?\s{0,9}[:=]\s{0,9}|Redoc\.init\(\s{0,9})["']([^"'\s<>]{1,500})["']""",
    re.IGNORECASE,
)
LIKELY = re.compile(r"\.json([?#]|$)|openapi|swagger|api-?docs", re.IGNORECASE)
NEVER = re.compile(r"\.(ya?ml|css|js|png|svg|ico|html?|woff2?)([?#]|$)", re.IGNORECASE)
SETUP = re.compile(r"(initiali[sz]er|init|config|setup)[\w.-]*\.js([?#]|$)", re.IGNORECASE)


def found(html: str) -> tuple[str, ...]:
    """Return where descriptions in JSON may be, the likeliest first."""
    named, linked = [], []
    for tag, attributes in _tags(html):
        named += [value for name, value in attributes.items() if name in NAMED]
        if tag in {"a", "link"} and LIKELY.search(attributes.get("href", "")):
            linked.append(attributes["href"])
    return _usable([*named, *INLINE.findall(html), *linked])


def scripts(html: str) -> tuple[str, ...]:
    """Return the scripts of a page that may name a description: Swagger UI's is in a file."""
    sources = [given.get("src", "") for tag, given in _tags(html) if tag == "script"]
    return tuple(each for each in dict.fromkeys(sources) if SETUP.search(each))


def _tags(html: str) -> Iterable[tuple[str, dict[str, str]]]:
    for tag, inside in TAG.findall(html):
        attributes = {
            name.lower(): unescape("".join(value)).strip()
            for name, *value in ATTRIBUTE.findall(inside)
        }
        yield tag.lower(), attributes


def _usable(addresses: list[str]) -> tuple[str, ...]:
    """Drop what is no JSON, and put what is called as descriptions are first."""
    usable = [each for each in addresses if each[:1] not in {"", "#"} and not NEVER.search(each)]
    return tuple(sorted(dict.fromkeys(usable), key=lambda each: not LIKELY.search(each)))
