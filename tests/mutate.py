"""Changes the code in small ways, and counts the changes that no test notices.

`make test-slow` runs it: SEED, MUTANTS (for each package) and PACKAGES choose the changes. The fast
tests of the same package must notice them. It is no test itself.

The tree is copied to a folder outside it, RESULTS or one of the system's, named for its content;
each change is made in that copy. What each test reaches is measured there first; a change is then
tried with the tests that reach it, one process at a time, until one fails. A test that hangs is
stopped, which counts as noticed and is said. Each result is written at once: a run that was stopped
goes on, and a greater number only adds changes. MOST limits the seconds of tests for each change.
"""

import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mutations import Changed, Mutant, choose, make
from tests.reached import STARTED, Reached

ROOT = Path(__file__).parents[1]
OWN = {ROOT / "tests" / name for name in ("mutate.py", "mutations.py", "reached.py")}
# Imported once, before a process is split off for each change.
LIBRARIES = (
    "alembic.context",
    "alembic.runtime.migration",
    "apprise",
    "cryptography.hazmat.primitives.asymmetric.rsa",
    "duckdb",
    "httpx",
    "jinja2",
    "jwt",
    "msgspec",
    "numpy",
    "psutil",
    "pyarrow",
    "pydantic",
    "rich.console",
    "sqlalchemy.orm",
    "tenacity",
    "typer",
    "zstandard",
)
MOST = float(os.environ.get("MOST", "inf"))  # seconds of tests, as measured, for each change
MEMORY = 10 * 2**30  # bytes of addresses: a change may make a loop that never ends
SLACK, FACTOR = 20.0, 10.0  # a test hangs after that many seconds, and times as measured
NOT_IMPORTED = "ImportError while loading conftest"
OPTIONS = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not long and not slow"]


class Test(NamedTuple):
    """A test that passes without a change."""

    name: str
    seconds: float
    lines: frozenset[tuple[str, int]]


class Chosen:
    """Runs some tests alone, in an order, with a limit for each; notes the first that fails."""

    def __init__(self, tests: list[Test], out: Path) -> None:
        self.tests, self.out = tests, out

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests only."""
        found = {item.nodeid: item for item in items}
        items[:] = [found[test.name] for test in self.tests if test.name in found]
        for item, test in zip(items, self.tests, strict=True):
            limit = SLACK + FACTOR * test.seconds
            item.add_marker(pytest.mark.timeout(limit), append=False)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed:
            how = "timeout" if "Timeout (>" in report.longreprtext else "failed"
            self.out.write_text(json.dumps([how, report.nodeid]), "utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note that the code cannot be imported."""
        if report.failed:
            self.out.write_text(json.dumps(["failed", report.nodeid]), "utf-8")


class Copy:
    """A copy of the tree, and the results of its changes beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / f"partner-sync-mutants-{_digest(ROOT)}"
        self.tree = self.folder / "tree"
        self.results = self.folder / "results.jsonl"
        self.out = self.folder / "out"
        left_out = shutil.ignore_patterns(".*", "__pycache__")
        shutil.copytree(ROOT, self.tree, ignore=left_out, dirs_exist_ok=True)
        os.chdir(self.tree)
        sys.path.insert(0, str(self.tree))
        os.environ["PYTHONPATH"] = str(self.tree)  # programs that tests start
        os.environ["CI"] = "1"  # hypothesis tries the same examples each time

    def write(self, file: str, text: str) -> None:
        """Write a file, and forget how it was compiled: a second change may have the same time."""
        path = self.tree / file
        path.write_text(text, "utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def note(self, result: dict[str, Any]) -> None:
        """Add a result."""
        with self.results.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(result)}\n")

    def noted(self) -> list[dict[str, Any]]:
        """Return the results so far."""
        if not self.results.exists():
            return []
        return [json.loads(line) for line in self.results.read_text("utf-8").splitlines()]

    def tests(self, package: str) -> list[Test]:
        """Return the tests of a package that pass, measured once."""
        measured = self.folder / f"{package}.json"
        if not measured.exists():
            out = self.folder / "measured"
            options = [option for option in OPTIONS if option != "-x"]
            plugin = Reached(self.tree, out)
            self.run(lambda: pytest.main([*options, f"tests/{package}"], [plugin]), 3600)
            out.rename(measured)
        tests = json.loads(measured.read_text("utf-8"))
        for name in sorted(name for name, test in tests.items() if not test["passed"]):
            say(f"fails without a change and is left out: {name}")
        return [
            Test(name, test["seconds"], frozenset((file, line) for file, line in test["lines"]))
            for name, test in tests.items()
            if test["passed"]
        ]

    def run(self, work: Callable[[], int], seconds: float) -> int | None:
        """Run in a process of its own; return its code, negative for a signal, None: too late."""
        child = os.fork()
        if not child:
            os.setsid()
            _work(work, self.folder / "said")
        try:
            return _code(child, time.monotonic() + seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # also what its tests have left behind

    def first_failure(self, tests: list[Test]) -> tuple[str, str] | None:
        """Run tests until one fails; return how and which, None if all pass."""
        self.out.unlink(missing_ok=True)
        files = dict.fromkeys(test.name.partition("::")[0] for test in tests)
        seconds = sum(SLACK + FACTOR * test.seconds for test in tests)
        plugin = Chosen(tests, self.out)
        code = self.run(lambda: pytest.main([*OPTIONS, *files], [plugin]), seconds + SLACK)
        if self.out.exists():
            how, test = json.loads(self.out.read_text("utf-8"))
            return how, test
        if code is None:
            return "timeout", ""
        if code < 0 or code == pytest.ExitCode.INTERNAL_ERROR:
            return "crash", ""  # of the process, or of pytest as it reports a failure
        if code:
            said = (self.folder / "said").read_text("utf-8", "replace")
            if said.startswith(NOT_IMPORTED):
                return "failed", ""  # a conftest.py imports the changed code
            raise RuntimeError(f"the tests were not run (code {code}): {said}")
        return None


def _code(child: int, end: float) -> int | None:
    """Wait for a process, until a time of `time.monotonic`."""
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def _work(work: Callable[[], int], said: Path) -> None:
    """Do the work of a process that was split off, and end it."""
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        code = int(work())
    finally:
        os._exit(code)  # nothing of the process that it came from is cleaned up


class Trial:
    """Tries the changes of a package. A test that killed before comes first."""

    def __init__(self, copy: Copy, package: str) -> None:
        self.copy, self.package = copy, package
        self.tests = copy.tests(package)
        self.kills = Counter(str(each["by"]) for each in self._noted())

    def _noted(self) -> list[dict[str, Any]]:
        return [each for each in self.copy.noted() if each["package"] == self.package]

    def run(self, chosen: list[Mutant]) -> None:
        """Try what was not tried before."""
        done = {(each["file"], each["node"]) for each in self._noted()}
        for mutant in chosen:
            if mutant not in done:
                self._try(mutant)
                self._say()

    def _try(self, mutant: Mutant) -> None:
        begun = time.monotonic()
        text = (self.copy.tree / mutant.file).read_text("utf-8")
        changed = make(mutant, text)
        outcome, by = "not reached", ""
        while tests := self._ordered(mutant, changed):
            self.copy.write(mutant.file, changed.text)
            try:
                failure = self.copy.first_failure(tests)
            finally:
                self.copy.write(mutant.file, text)
            outcome, by = failure or ("survived", "")
            if self._is_steady(by):
                break
        result = {"package": self.package, **mutant._asdict(), "what": changed.what}
        seconds = round(time.monotonic() - begun, 1)
        tried = len(tests)
        self.copy.note(result | {"outcome": outcome, "by": by, "tests": tried, "seconds": seconds})
        self.kills[by] += 1
        if outcome != "failed":
            say(f"{outcome}: {changed.what}")

    def _ordered(self, mutant: Mutant, changed: Changed) -> list[Test]:
        """Return the tests that reach a change, those first that kill most for their time."""

        def worth(test: Test) -> tuple[bool, float]:
            return STARTED in test.lines, -(self.kills[test.name] + 0.2) / (test.seconds + 0.2)

        def reaching(lines: range) -> list[Test]:
            hit = {(mutant.file, line) for line in lines}
            return [test for test in self.tests if not hit.isdisjoint(test.lines)]

        if not changed.around:
            return _first(sorted(self.tests, key=worth))
        found = reaching(changed.lines) or reaching(changed.around)
        started = [test for test in self.tests if STARTED in test.lines and test not in found]
        return _first(sorted(found + started, key=worth))

    def _is_steady(self, by: str) -> bool:
        """Return whether a test passes without a change; it is left out where it does not.

        A test is tried when it notices a change for the first time.
        """
        test = [each for each in self.tests if each.name == by]
        if not test or self.kills[by] or self.copy.first_failure(test) is None:
            return True
        say(f"fails without a change and is left out: {by}")
        self.tests.remove(test[0])
        return False

    def _say(self) -> None:
        found = Counter(each["outcome"] for each in self._noted())
        noticed = found.total() - found["survived"] - found["not reached"]
        say(
            f"{self.package}: {noticed} of {found.total()} noticed, {found['timeout']} by a timeout"
        )


def _first(tests: list[Test]) -> list[Test]:
    """Return the tests that one change may take, at least one."""
    seconds = accumulate(test.seconds for test in tests)
    return [test for test, until in zip(tests, seconds, strict=True) if until <= MOST] or tests[:1]


def _digest(tree: Path) -> str:
    """Return a name for the content of the tree that the tests see."""
    digest = hashlib.sha256()
    for file in sorted(_files(tree)):
        digest.update(file.relative_to(tree).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _files(tree: Path) -> Iterator[Path]:
    yield tree / "pyproject.toml"
    for folder in ("pipelines", "tests", "sandbox"):
        for file in (tree / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and file not in OWN:
                yield file


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(seed: int, number: int, packages: list[str]) -> None:
    """Try changes and print each that no test notices, and the share of those noticed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    copy = Copy(Path(os.environ.get("RESULTS") or tempfile.gettempdir()))
    say(f"results: {copy.results}")
    for library in LIBRARIES:
        importlib.import_module(library)
    for package in packages:
        Trial(copy, package).run(choose(copy.tree, package, seed, number))


if __name__ == "__main__":
    main(
        int(os.environ.get("SEED", "1")),
        int(os.environ.get("MUTANTS", "60")),
        os.environ.get("PACKAGES", "extract load rate_limit publish reconcile").split(),
    )
