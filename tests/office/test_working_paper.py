"""Working papers that LibreOffice recalculates: totals are what was signed."""

import json
import re
import subprocess
import zipfile
from pathlib import Path

import openpyxl
import pytest

from pipelines.finance.reconcile.close_copy import MANIFEST
from tests.effort import EFFORT
from tests.finance.any_closes import closed_in_turn
from tests.finance.test_verify_copy import publish_two
from tests.finance.workbooks import evaluate, exact, read_totals, signed_totals
from tests.office.install import find_office
from tests.versions.homes import Stores, home_of

two = home_of(publish_two)
# LibreOffice recalculates a workbook that it opens only where its settings say so.
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""
CACHED = re.compile(rb"(</f>)<v>[^<]*</v>")
WRONG = 1234567


def with_wrong_values(file: Path, wrong: Path) -> Path:
    """Write a workbook whose formulas have wrong cached values."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(wrong, "w") as target:
        for name in source.namelist():
            content = CACHED.sub(rb"\1<v>%d</v>" % WRONG, source.read(name))
            target.writestr(name, content)
    return wrong


def recalculated(file: Path, folder: Path) -> Path:
    """Return a workbook as LibreOffice saves it after it has computed every formula."""
    office = find_office()
    assert office
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(SETTINGS)
    saved = folder / "saved"
    environment = f"-env:UserInstallation={profile.as_uri()}"
    command = [office, environment, "--headless", "--convert-to", "xlsx", "--outdir", str(saved)]
    subprocess.run([*command, str(file)], check=True, capture_output=True, timeout=300)
    return saved / file.name


def require_recalculated(folder: Path, scratch: Path) -> None:
    """Require that every total of a copy is what its manifest says, and no cell is an error."""
    scratch.mkdir()
    file = next(folder.glob("*.xlsx"))
    wrong = with_wrong_values(file, scratch / file.name)
    assert WRONG in read_totals(wrong).values()
    saved = recalculated(wrong, scratch)
    expected = signed_totals(json.loads((folder / MANIFEST).read_bytes()))
    assert read_totals(saved) == evaluate(file)
    found = exact(read_totals(saved))
    assert {key: found.get(key, 0) for key in expected} == expected
    for sheet in openpyxl.load_workbook(saved, data_only=True):
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type != "e", (sheet.title, cell.coordinate, cell.value)
                assert cell.value != WRONG, (sheet.title, cell.coordinate)


def test_every_total_is_recalculated_to_what_was_signed(two: Stores, tmp_path: Path) -> None:
    for month in ("2026-09", "2026-10"):
        require_recalculated(two.home.closes / month / "001", tmp_path / month)


@pytest.mark.timeout(1_800)
def test_totals_of_any_months_are_recalculated_to_what_was_signed(tmp_path: Path) -> None:
    for seed in range(20, 20 + EFFORT):
        for number, (_stores, _books, folder) in enumerate(closed_in_turn(tmp_path, seed)):
            require_recalculated(folder, tmp_path / f"{seed}-{number}")
