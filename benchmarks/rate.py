"""How near requests come to the rate limit, by the service's own count, in real time.

300 requests for three lists side by side, with pages requested ahead. At 5 requests per second the
last one can arrive 59 seconds after the first at the earliest: 59 windows of one second.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import httpx

from benchmarks.machine import machine, table
from tests.sandbox.running import AUDIENCE, ENVIRONMENT, Running, started

LIMIT, TOO_MANY = 5, 429
REQUESTS = 300
AT_MOST = {(0, 0): 1.02, (150, 0): 1.03, (400, 0): 1.04, (150, 40): 1.06, (400, 40): 1.14}
SIZES = ("--partners", "2000", "--usage", "2000", "--billing", "2000")
# Seconds between requests of the other client: three of them are a little longer than a window. Of
# requests exactly a third of a second apart, the service counts four in some windows.
INTERVAL = 0.338
SETTLED = 10.0  # seconds after which a client has learned of the other one
COLUMNS = ("case", "latency ms", "jitter %", "requests", "own 429s", "seconds", "result", "goal")


@dataclass(frozen=True)
class Case:
    """What is measured: processes that share the limit, and what disturbs them."""

    latency: int
    jitter: int = 0  # percent of the latency, added to both ways together at most
    processes: int = 1
    disturbance: str = ""  # other | killed


@dataclass
class Other:
    """A client that sends evenly, whatever the answers say: moments and statuses."""

    answers: list[tuple[float, int]] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def send(self, running: Running) -> None:
        """Send until it is over; each request in a thread, so that latency delays none."""
        token, threads = running.token(), []
        with running.client(token) as http:
            while not self.is_over.wait(INTERVAL):
                threads.append(threading.Thread(target=self._ask, args=(http,)))
                threads[-1].start()
            for thread in threads:
                thread.join()

    def _ask(self, http: httpx.Client) -> None:
        self.answers.append((time.time(), http.get("/v2/whoami").status_code))


@contextmanager
def _other_client(running: Running) -> Iterator[Other]:
    other = Other()
    thread = threading.Thread(target=other.send, args=(running,))
    thread.start()
    try:
        yield other
    finally:
        other.is_over.set()
        thread.join()


@contextmanager
def _sandbox(case: Case) -> Iterator[Running]:
    one_way_jitter = case.latency * case.jitter / 100 / 2
    options = ("--latency-ms", str(case.latency), "--jitter-ms", str(round(one_way_jitter)))
    with started(*options, *SIZES) as running:
        yield running


def _start(
    running: Running, folder: Path, requests: int, processes: int = 1
) -> list[subprocess.Popen[str]]:
    """Start processes that share a rate limit; they begin to send when all of them are ready."""
    command = [sys.executable, "-m", "benchmarks.rate_client"]
    arguments = [running.url, AUDIENCE, str(folder), str(requests)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen([*command, *arguments], env=os.environ | ENVIRONMENT, **pipes)
        for _ in range(processes)
    ]
    if any(_pipe(each.stdout).readline() != "ready\n" for each in started):
        raise SystemExit("a client did not start")
    time.sleep(1.1)  # a window, so that their first requests do not count
    for each in started:
        print(file=_pipe(each.stdin), flush=True)
    return started


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise TypeError("not a pipe")
    return pipe


def _sent(process: subprocess.Popen[str]) -> list[tuple[int, float]]:
    """Return status and Unix second of each request, when the process has ended."""
    printed, _ = process.communicate()
    return [tuple(json.loads(line)) for line in printed.splitlines() if line.endswith("]")]


def _pace(case: Case) -> tuple[object, ...]:
    """Measure how long all requests take, and how far apart the processes end."""
    with _sandbox(case) as running, tempfile.TemporaryDirectory() as folder:
        requests = REQUESTS // case.processes
        processes = _start(running, Path(folder), requests, case.processes)
        sent = [_sent(process) for process in processes]
        counted = running.statistics()
    admitted = sorted(at for each in sent for status, at in each if status != TOO_MANY)
    ended = [max(at for _, at in each) for each in sent]
    seconds = admitted[-1] - admitted[0]
    ratio = seconds / ((len(admitted) - 1) // LIMIT)
    result = f"{ratio:.3f}"
    goal = f"{AT_MOST.get((case.latency, case.jitter), 1.14):.2f}"
    if case.processes > 1:
        result += f", ends within {max(ended) - min(ended):.1f} s"
        goal = "1.03, within 2 s"
    return _row(case, counted, seconds, result, goal)


def _beside_another(case: Case) -> tuple[object, ...]:
    """Measure which part of what another client leaves is used."""
    with (
        _sandbox(case) as running,
        tempfile.TemporaryDirectory() as folder,
        _other_client(running) as other,
    ):
        time.sleep(1)
        sent = _sent(*_start(running, Path(folder), REQUESTS // 2))
        counted = running.statistics()
    since, until = min(at for _, at in sent) + SETTLED, max(at for _, at in sent)
    ours = sum(status != TOO_MANY and at >= since for status, at in sent)
    theirs = sum(status != TOO_MANY and since <= at <= until for at, status in other.answers)
    refused = sum(at >= since and status == TOO_MANY for status, at in sent)
    others_refused = sum(status == TOO_MANY and since <= at for at, status in other.answers)
    used = ours / ((until - since) * LIMIT - theirs)
    result = f"{used:.1%} of the rest; later 429s: ours {refused}, theirs {others_refused}"
    return _row(case, counted, until - since, result, "90 %; 1 a minute")


def _killed(case: Case) -> tuple[object, ...]:
    """Measure the pace of one process from one second after another was killed."""
    with _sandbox(case) as running, tempfile.TemporaryDirectory() as folder:
        survivor, victim = _start(running, Path(folder), REQUESTS // 2, 2)
        time.sleep(10)
        victim.kill()
        killed_at = time.time()
        victim.communicate()
        sent = [at for _, at in _sent(survivor) if at >= killed_at + 1]
        counted = running.statistics()
    seconds = max(sent) - min(sent)
    rate = (len(sent) - 1) / seconds
    return _row(case, counted, seconds, f"{rate:.2f} per second after 1 s", "4.9 per second")


def _row(
    case: Case, counted: dict[str, Any], seconds: float, result: str, goal: str
) -> tuple[object, ...]:
    name = case.disturbance or f"{case.processes} process{'es' * (case.processes > 1)}"
    figures = (counted["admitted"], counted["refused"], f"{seconds:.2f}")
    return name, case.latency, case.jitter, *figures, result, goal


MEASURES = {"": _pace, "other": _beside_another, "killed": _killed}


def main(arguments: list[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rate", description=__doc__)
    parser.add_argument("--latency", type=int, nargs="*", default=[0, 150, 400], help="ms")
    parser.add_argument("--jitter", type=int, default=0, help="percent of the latency")
    parser.add_argument("--processes", type=int, default=1, help="that share the limit")
    parser.add_argument("--disturbance", choices=["other", "killed"], default="")
    parser.add_argument("--runs", type=int, default=1, help="of each row")
    options = parser.parse_args(arguments)
    rows = []
    for latency in options.latency * options.runs:
        case = Case(latency, options.jitter, options.processes, options.disturbance)
        rows.append(MEASURES[case.disturbance](case))
        print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    print(f"{machine()}\n`python -m benchmarks rate {' '.join(arguments)}`\n")
    print(table(COLUMNS, rows))
