"""Where there is no browser and none can be installed, the target fails and says so."""

from pathlib import Path

import pytest

from tests.browser import chromium


def test_without_a_browser_it_says_so_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.main() == 1
    said = capsys.readouterr().err
    assert said.startswith("no browser to test with (chromium, chromium-browser, google-chrome)")
    assert said.endswith("Nothing was tested.\n")


def test_a_browser_of_the_system_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "chromium"
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.main() == 0
    assert chromium.found() == str(program)
