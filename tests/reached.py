"""Which lines of `pipelines` each test reaches, and its seconds. A plugin, and no test itself."""

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

MOST = 100  # calls of a function in a test whose lines are noted; then all its lines count
STARTED = ("process", 0)  # what such a process reaches is not known
Line = tuple[str, int]


class Reached:
    """Notes what each test reaches; what its fixtures reach counts for all tests of the file."""

    def __init__(self, tree: Path, out: Path) -> None:
        self.tree, self.out = tree, out
        self.lines: set[Line] = set()
        self.calls: Counter[CodeType] = Counter()
        self.shared: dict[str, set[Line]] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        sys.addaudithook(self._note_process)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        with self._noting():
            result = yield
        self.shared.setdefault(_file(item.nodeid), set()).update(self.lines)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        with self._noting():
            result = yield
        self.tests[item.nodeid] = {"lines": set(self.lines)}
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self.tests.setdefault(report.nodeid, {"lines": set()})
        test["seconds"] = test.get("seconds", 0.0) + report.duration
        test["passed"] = test.get("passed", True) and report.passed

    def pytest_sessionfinish(self) -> None:
        for name, test in self.tests.items():
            test["lines"] = sorted(test["lines"] | self.shared.get(_file(name), set()))
        self.out.write_text(json.dumps(self.tests), "utf-8")

    @contextmanager
    def _noting(self) -> Iterator[None]:
        self.lines.clear()
        self.calls.clear()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)

    def _note_process(self, event: str, _arguments: Any) -> None:
        if event in {"subprocess.Popen", "os.fork", "os.posix_spawn"}:
            self.lines.add(STARTED)

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(f"{self.tree}/pipelines/"):
            return None
        file = code.co_filename.removeprefix(f"{self.tree}/")
        self.calls[code] += 1
        if self.calls[code] < MOST:
            self.lines.add((file, frame.f_lineno))
            return self._step
        if self.calls[code] == MOST:
            self.lines.update((file, line) for *_at, line in code.co_lines() if line)
        return None

    def _step(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            file = frame.f_code.co_filename.removeprefix(f"{self.tree}/")
            self.lines.add((file, frame.f_lineno))
        return self._step


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]
