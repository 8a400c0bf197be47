"""Files of decisions as Excel saves them in offices of several countries."""

from decimal import Decimal
from pathlib import Path

import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.finance.decisions_file import read_decisions, says
from tests.app.conftest import BREAKS
from tests.app.test_breaks import Cells, filled, listed
from tests.versions.homes import Stores

LONG, W, *_OTHERS = BREAKS
OFFICES = [("utf-8", ","), ("utf-8-sig", ";"), ("cp1252", ";"), ("utf-16", "\t")]


@pytest.mark.parametrize(("encoding", "sep"), OFFICES)
def test_decisions_in_a_file_of_another_country_are_read(
    books: Stores, tmp_path: Path, encoding: str, sep: str
) -> None:
    exact = {each["subject"]: each["difference"] for each in listed(books)}
    grouped = f"{exact[LONG]:,f}".replace(",", " ").replace(".", ",")
    cells: dict[str, Cells] = {
        LONG: {"decision": "RESOLVE ", "reason": "geklärt", "difference": grouped},
        W: {"decision": "resolve", "reason": "réglé", "difference": "200,000000"},
    }
    text = filled(books, tmp_path / "first.csv", cells, sep).read_text(encoding="utf-8-sig")
    file = tmp_path / "breaks.csv"
    file.write_bytes(text.replace("\n", "\r\n").encode(encoding, "replace"))
    reasons = [each["new_reason"] for each in read_decisions(books, file)]
    assert sorted(reasons) == ["geklärt", "réglé"]


def test_a_file_of_decisions_with_a_secret_is_refused(
    books: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", "canary-secret-7f3a9c")
    cells: dict[str, Cells] = {LONG: {"decision": "resolve", "reason": "canary-secret-7f3a9c"}}
    with pytest.raises(ConfigurationError, match="secret of a connection") as refused:
        read_decisions(books, filled(books, tmp_path / "first.csv", cells, ","))
    assert "canary" not in f"{refused.value} {refused.value.remedy}"


SPELLINGS = {
    "1234.5": ["1234,5", "1.234,50", "1,234.5", "1 234,5", "1\u202f234,5"],
    "-0.25": ["-0,25", "\u22120.25", "-.25", "-,25"],
    "1234": ["1234", "1.234", "1,234", "1234,00", "1'234"],
}


def test_numbers_are_read_with_a_point_or_a_comma() -> None:
    for number, texts in SPELLINGS.items():
        for text in texts:
            assert says(text, Decimal(number)), text
            assert not says(text, Decimal(number) + Decimal("0.01")), text
    assert says("", None)
    assert not says("", Decimal(0))
    assert not says("0", None)
    assert not says("sNaN", Decimal(0))
