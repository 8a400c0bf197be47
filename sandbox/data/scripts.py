"""Words in several scripts: names of companies and cities, and free-text notes.

Here: the tables of ``words.toml``, read once. Not here: which record gets which word.
"""

import json
import tomllib
from importlib.resources import files

_WORDS = tomllib.loads(files("sandbox.data").joinpath("words.toml").read_text(encoding="utf-8"))
_COMPANIES: list[list[str]] = _WORDS["companies"]
_LEGAL_FORMS = 2


def literal(text: str) -> str:
    """Write ``text`` as a JSON string in its own script, not as escapes."""
    return json.dumps(text, ensure_ascii=False)


NOTES: tuple[str, ...] = tuple(literal(note) for note in _WORDS["notes"])
CITIES: tuple[str, ...] = tuple(literal(city) for city in _WORDS["cities"])


def company(index: int) -> str:
    """Give the name of company ``index`` as JSON, numbered once the words are used up."""
    stem, *forms = _COMPANIES[index % len(_COMPANIES)]
    repeat, form = divmod(index // len(_COMPANIES), _LEGAL_FORMS)
    name = f"{stem} {forms[form]}"
    return literal(f"{name} {repeat + 1}" if repeat else name)
