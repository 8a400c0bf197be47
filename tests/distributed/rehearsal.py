"""`make rehearsal`: twenty accounts, two workers, one night, all on this machine; what came of it.

First the embedded default reads every account; then a night does the same with PostgreSQL, Redis,
an object store and Celery's workers, and both are compared value by value. At last the limit is
lifted, and one worker's time is compared with that of two; each of these is a machine of a third of
a core, so that what stands beside them finds room as on machines of its own. `LOOK=1` keeps the UI
open; `ACCOUNTS=6` and `PARTS=night` make it shorter. Not here: what kill -9 does to a night
(killing), how a worker is held to its share (share).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.distributed import analyst, costs, expectations
from tests.distributed.accounts import SMALL, Accounts, serving
from tests.distributed.expectations import Expectation, Lifted
from tests.distributed.night import Night, Servers, servers
from tests.distributed.share import limited

ACCOUNTS = int(os.environ.get("ACCOUNTS", "20"))
AT_ONCE = 4  # steps of a worker; most of a step of `fetch` waits for the service
MACHINE = 1 / 3  # of a processor: what each worker has whose times are compared
LIFTED = {"PARTNER_SYNC_WINDOW": "0"}
CHECKOUT = Path(__file__).parents[2]


def say(words: str) -> None:
    """Show what happens."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


@dataclass
class Rehearsal:
    """One rehearsal in a folder of its own; what was expected and measured so far."""

    folder: Path
    servers: Servers
    found: list[Expectation] = field(default_factory=list)
    before: dict[str, float] = field(default_factory=dict)  # what the servers used for other nights
    looked: tuple[int, int] = (0, 0)  # the machine's ticks when the night began

    def night(self) -> None:
        """Let two workers read what the embedded default reads; compare."""
        with serving(self.folder, ACCOUNTS, "--latency-ms=20", *SMALL) as accounts:
            say(f"{ACCOUNTS} accounts at {accounts.url}; the embedded default reads them first")
            home = embedded(self.folder / "embedded", accounts)
            accounts.forget()
            night = Night(self.folder / "night", self.servers, accounts, say=say)
            say(f"the same night by two workers of {AT_ONCE} steps each")
            try:
                address = night.stack.webserver()
                say(f"the UI is at {address}")
                self.looked = costs.machine()
                with analyst.asking(night.home, night.environment) as seen:
                    night.begin(2, AT_ONCE)
                    night.until(night.complete, "the night's end")
                self.found += expectations.of_analyst(seen)
                self.found += expectations.of_values(night, home)
                self.found += expectations.of_budget(night)
                self._costs(night)
                if os.environ.get("LOOK"):
                    say(f"the UI stays at {address} until Enter is pressed")
                    sys.stdin.readline()
            finally:
                night.stack.end()

    def workers(self) -> None:
        """Compare one worker's time with that of two, the limit lifted, each on a third of a core.

        With whole ones two would compete with the servers for the cores that one leaves to them:
        what a second machine brings would not be seen. The night of one stands in the middle of
        those of two: a machine is not as fast from hour to hour.
        """
        before = self._lifted(2, self.folder / "before")
        one = self._lifted(1, self.folder / "one")
        after = self._lifted(2, self.folder / "after")
        self.found.append(expectations.of_scaling(before, one, after))

    def _lifted(self, count: int, folder: Path) -> Lifted:
        say(f"the limit lifted, workers of {MACHINE:.2f} core and one step at a time: {count}")
        with serving(self.folder, ACCOUNTS, "--rate=0", *SMALL) as accounts:
            night = Night(folder, self.servers, accounts, LIFTED, say)
            try:
                self.looked = costs.machine()
                night.prepare(count, 1)
                with limited(night.stack.workers, MACHINE):
                    night.stack.daemon()
                    night.until(night.complete, "the night's end")
                return Lifted(night.seconds(), self._costs(night))
            finally:
                night.stack.end()

    def _costs(self, night: Night) -> float:
        """Show what the night cost, process by process; return the neighbours' share."""
        own = {name: process.pid for name, process in night.stack.processes.items()}
        shared = {each.name: each.process.pid for each in self.servers.every if each.process}
        used = costs.processor_seconds(own | shared)
        say(f"  {len(night.steps())} steps in {night.seconds():.0f} s; processor seconds, peak MB:")
        for name, root in (own | shared).items():
            seconds = used[name] - self.before.get(name, 0.0)
            say(f"    {name:12} {seconds:8.1f} {costs.peak_megabytes(root):8.0f}")
        self.before = {name: used[name] for name in shared}
        taken = self._taken()
        say(f"    neighbours took {taken:.0%} of the machine's time")
        kept = sum(map(costs.bytes_below, night.homes))
        say(f"    homes of {len(night.homes)} machines {kept / 1e6:.1f} MB")
        return taken

    def _taken(self) -> float:
        """Return the share of the machine that its neighbours took since the night began."""
        (all_then, theirs_then), (all_now, theirs_now) = self.looked, costs.machine()
        return (theirs_now - theirs_then) / max(1, all_now - all_then)


def embedded(home: Path, accounts: Accounts) -> Path:
    """Sync every connection with the embedded default; return its home."""
    accounts.write(home)
    own = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
    variables = own | accounts.secrets | {"PARTNER_SYNC_HOME": str(home)}
    program = str(Path(sys.executable).with_name("partner-sync"))
    done = subprocess.run(
        [program, "sync"], env=variables, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return home


def table(found: list[Expectation]) -> Iterator[str]:
    """Yield the closing table, line by line."""
    yield f"{'':4} {'expected':60} measured"
    for each in found:
        yield f"{'ok' if each.holds else 'NOT':4} {each.expected:60} {each.measured}"


def main() -> int:
    """Rehearse; return 0 where everything holds."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as another user where we are root
        with servers(folder / "servers") as shared:
            rehearsal = Rehearsal(folder, shared)
            for part in os.environ.get("PARTS", "night workers").split():
                {"night": rehearsal.night, "workers": rehearsal.workers}[part]()
    for line in table(rehearsal.found):
        say(line)
    return 0 if all(each.holds for each in rehearsal.found) else 1


if __name__ == "__main__":
    sys.exit(main())
