"""`make fault-pairs`: every pair of the sandbox's faults, and each alone now and then; for nights.

The same judgement as for one fault (tests/end_to_end/stand.py). Names as arguments: only the pairs
with one of these faults; FAULT_PROCESSES: how many at once. Exit code 1 where a pair ended
otherwise; each is named with the reason.
"""

import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from sandbox.faults.catalogue import CATALOGUE
from tests.end_to_end.stand import Stand, Trouble, standing

PROCESSES = int(os.environ.get("FAULT_PROCESSES", os.cpu_count() or 1))
RARELY = (2, 3, 7)
Troubles = tuple[Trouble, ...]


def trials(only: Sequence[str]) -> list[Troubles]:
    """Return what is to be tried: pairs on every request, each alone on some."""
    kinds = [Trouble(name, stage=kind.stage) for name, kind in CATALOGUE.items()]
    found: list[Troubles] = [*combinations(kinds, 2)]
    found += [(replace(each, every=every),) for each in kinds for every in RARELY]
    return [each for each in found if not only or {one.name for one in each} & {*only}]


def tried(share: list[Troubles]) -> list[str]:
    """Try a share of them on a sandbox of its own; return what is wrong, in words."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder, standing(Path(folder)) as stand:
        for each in share:
            wrong += _tried(stand, each)
    return wrong


def _tried(stand: Stand, troubles: Troubles) -> list[str]:
    home = stand.home.with_name("trial")
    try:
        stand.befall(troubles, home)
    except Exception:  # noqa: BLE001 whatever it is, it is what we look for
        named = " + ".join(f"{each.name} (every {each.every})" for each in troubles)
        return [f"{named}\n{traceback.format_exc(limit=-3)}"]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return []


def main(only: Sequence[str]) -> int:
    """Try all, several at once; say what is wrong and how many were tried."""
    every = trials(only)
    shares = [share for each in range(PROCESSES * 8) if (share := every[each :: PROCESSES * 8])]
    wrong = 0
    spawn = multiprocessing.get_context("spawn")  # not a Pool's: its processes may start no others
    with ProcessPoolExecutor(PROCESSES, mp_context=spawn) as pool:
        for done in as_completed([pool.submit(tried, share) for share in shares]):
            found = done.result()
            wrong += len(found)
            for words in found:
                sys.stdout.write(f"{words}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{len(every)} trials, {wrong} of them wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
