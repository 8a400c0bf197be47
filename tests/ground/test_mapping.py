"""mapping.toml: read whole or refused by table and field; what is not there stays unknown."""

from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError
from pipelines.settings import currencies, mapping

SANDBOX = files("pipelines.settings") / "sandbox.toml"
WRONG = {
    "unknown role": ("[usage]\nsum = 'amount'", "usage.sum: no such role"),
    "unknown table": ("[invoices]\nid = 'id'", "invoices: no such role"),
    "no path": ("[usage]\namount = 'a..b'", "usage.amount"),
    "a negative tolerance": ("[tolerance]\nline_minor = -1", "tolerance.line_minor"),
    "no time zone": ("time_zone = 'Mars'", "time_zone"),
    "no key": ("[match]\nkeys = ['colour']", "match.keys.0"),
    "no TOML": ("[usage", "mapping.toml"),
}


def test_nothing_is_mapped_where_there_is_no_file(tmp_path: Path) -> None:
    found = mapping.load(tmp_path)
    assert found == mapping.NOTHING
    assert found.mapping.usage.amount is None


def test_the_sandbox_is_mapped(tmp_path: Path) -> None:
    (tmp_path / mapping.FILE).write_text(SANDBOX.read_text())
    found = mapping.load(tmp_path)
    assert len(found.digest) == 64
    assert found.mapping.keys == ("usage",)
    assert found.mapping.billing.line_usage == "lines[].usageId"


def test_without_a_reference_partner_month_and_currency_match() -> None:
    found = mapping.parsed("[usage]\nid = 'id'", mapping.FILE)
    assert found.keys == ("partner", "month", "currency")


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    text, words = WRONG[case]
    with pytest.raises(ConfigurationError, match=r"^mapping") as error:
        mapping.parsed(text, mapping.FILE)
    assert words in str(error.value)


def test_a_wrong_file_maps_nothing_and_says_why(tmp_path: Path) -> None:
    (tmp_path / mapping.FILE).write_text("[usage]\nsum = 'amount'")
    found = mapping.read(tmp_path)
    assert found.mapping == mapping.NOTHING.mapping
    assert "usage.sum: no such role" in found.fault
    assert found.digest != mapping.NOTHING.digest


@pytest.mark.parametrize(("code", "unit"), [("EUR", "0.01"), ("JPY", "1"), ("KWD", "0.001")])
def test_minor_units(code: str, unit: str) -> None:
    assert currencies.unit(code) == Decimal(unit)
