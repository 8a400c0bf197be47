"""deploy/single-machine: units that can start, settings that exist, a backup that comes back."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.settings import PREFIX, Settings
from tests.cli.program import ran
from tests.sandbox.running import sandboxed

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "deploy" / "single-machine"
UNITS = sorted([*PLACE.glob("*.service"), *PLACE.glob("*.timer")])
INSTALLED = "/opt/partner-sync/"
SECTIONS = {"Unit", "Service", "Timer", "Install"}
VARIABLE = re.compile(r"^([A-Z_]+)=", re.MULTILINE)
SMALL = ("--rate=0", "--partners=20", "--usage=300", "--billing=30")


def lines(unit: Path) -> Iterator[tuple[str, str, str]]:
    """Yield section, name and value of every setting; fail where a line is none."""
    section = ""
    for line in unit.read_text().splitlines():
        if found := re.fullmatch(r"\[(\w+)\]", line):
            section = found[1]
        elif line and not line.startswith("#"):
            name, mark, value = line.partition("=")
            assert mark, f"{unit.name}: {line}"
            assert section in SECTIONS
            yield section, name, value


def values(unit: Path, name: str) -> list[str]:
    return [value for _section, each, value in lines(unit) if each == name]


def commands() -> list[tuple[str, str]]:
    names = ("ExecStart", "ExecStartPre", "ExecStartPost")
    return [(unit.name, value) for unit in UNITS for name in names for value in values(unit, name)]


@pytest.mark.parametrize(("unit", "command"), commands())
def test_what_a_unit_starts_is_there(unit: str, command: str) -> None:
    words = shlex.split(command)
    shell = words[:2] == ["/bin/sh", "-c"]
    for path in re.findall(r"/opt/partner-sync/[\w./-]*", command) if shell else words:
        if path.startswith(INSTALLED + ".venv/bin/"):
            assert Path(sys.executable).with_name(Path(path).name).is_file(), unit
        elif path.startswith(INSTALLED):
            assert (ROOT / path.removeprefix(INSTALLED)).exists(), unit
    assert shutil.which(words[0]) or words[0].startswith(INSTALLED), unit
    for module in re.findall(r"-m (\S+)|--module-name (\S+)", command) if not shell else ():
        name = "".join(module)
        assert name.isdigit() or importlib.util.find_spec(name), f"{unit}: {name}"


def test_units_name_units_that_are_there() -> None:
    known = {unit.name for unit in UNITS}
    for unit in UNITS:
        for name in ("Requires", "Wants", "After"):
            named = " ".join(values(unit, name)).split()
            assert {each for each in named if each.startswith("partner-sync")} <= known
    register = "partner-sync-register.service"
    for name in ("code", "webserver", "daemon"):
        unit = PLACE / f"partner-sync-{name}.service"
        assert register in values(unit, "Requires")[0]
        assert register in values(unit, "After")[0]


def test_secrets_reach_only_what_needs_them() -> None:
    given = {unit.name for unit in UNITS if values(unit, "EnvironmentFile")}
    assert given == {"partner-sync-code.service", "partner-sync-register.service"}
    web = values(PLACE / "partner-sync-webserver.service", "ExecStart")[0]
    assert "--host 127.0.0.1" in web


def test_every_variable_is_a_setting_of_ours() -> None:
    named = VARIABLE.findall((PLACE / "environment.example").read_text())
    known = {PREFIX + name.upper() for name in (*Settings.model_fields, "client_secret")}
    assert len(named) > 6
    assert set(named) - known == {"DAGSTER_HOME"}
    homes = {value for unit in UNITS for value in values(unit, "Environment")}
    assert homes == {"DAGSTER_HOME=/var/lib/partner-sync/dagster"}
    assert f"{homes.pop()}\n" in (PLACE / "environment.example").read_text()


def test_the_readme_names_every_file() -> None:
    text = (PLACE / "README.md").read_text()
    files = [file.name for file in PLACE.iterdir() if file.suffix in {".service", ".timer", ".py"}]
    assert [name for name in files if name not in text] == []


def script(name: str, *arguments: Path | str) -> subprocess.CompletedProcess[str]:
    """Run a script as a machine does that has nothing but Python."""
    return subprocess.run(
        [sys.executable, "-I", "-S", PLACE / name, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )


def test_a_home_comes_back_whole_and_goes_on(tmp_path: Path) -> None:
    home, kept, back = tmp_path / "one", tmp_path / "kept", tmp_path / "back"
    with sandboxed(*SMALL) as service:
        environment = service.environment | {"PARTNER_SYNC_HOME": str(home)}
        ran(environment, "sync")
        first = script("backup.py", home, kept)
        ran(environment, "sync")
        second = script("backup.py", home, kept, "--keep=1")
        assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
        (copied,) = kept.iterdir()
        assert str(copied) == second.stdout.strip()
        shutil.rmtree(home)

        restored = script("restore.py", copied, back)
        environment["PARTNER_SYNC_HOME"] = str(back)
        verified, synced = ran(environment, "verify"), ran(environment, "sync")
        again = ran(environment, "verify")
    assert restored.returncode == 0, restored.stderr
    assert (verified.returncode, verified.stderr.strip()) == (0, "")
    assert "6 manifests" in verified.stdout
    assert (synced.returncode, again.returncode) == (0, 0), synced.stderr
    assert "9 manifests" in again.stdout
    assert (back / "published").stat().st_mode & 0o777 == 0o755
    assert (back / "state").stat().st_mode & 0o777 == 0o700


def test_nothing_is_overwritten_and_nothing_half_is_restored(tmp_path: Path) -> None:
    full, half = tmp_path / "full", tmp_path / "2026-11-21.unfinished"
    for folder in (full, half):
        (folder / "state").mkdir(parents=True)
        (folder / "state" / "state.sqlite").touch()
    for backup, home in ((full, full), (half, tmp_path / "new"), (tmp_path, tmp_path / "new")):
        done = script("restore.py", backup, home)
        assert (done.returncode, "Nothing was restored" in done.stderr) == (1, True)
    assert not (tmp_path / "new").exists()
    no_home = script("backup.py", tmp_path, tmp_path / "kept")
    assert (no_home.returncode, "is no home" in no_home.stderr) == (1, True)


def test_dagster_can_be_told_of_the_code_server() -> None:
    text = (PLACE / "workspace.yaml").read_text()
    socket = re.findall(r"socket: (\S+)", text)
    code = values(PLACE / "partner-sync-code.service", "ExecStart")[0]
    assert [f"--socket {each}" in code for each in socket] == [True]
    assert "--location-name partner-sync" in code
    assert "location_name: partner-sync\n" in text
