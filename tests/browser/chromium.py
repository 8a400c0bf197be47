"""`python -m tests.browser.chromium`: install Debian's Chromium if this machine has no browser.

Playwright downloads a browser of its own from a host that is not reachable from everywhere.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
UPDATE = "apt-get -qq update"
INSTALL = "apt-get -qq install --yes --no-install-recommends chromium"


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome of this machine."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Yield a browser. Fails if this machine has none."""
    program = find_chromium()
    assert program, "no browser: `python -m tests.browser.chromium` installs one"
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=root)
        yield chromium
        chromium.close()


def main() -> None:
    """Install a browser if there is none. Exits with a message if that is not possible."""
    if find_chromium():
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(f"No browser ({', '.join(PROGRAMS)}). Install one: apt-get install chromium")
    for command in (UPDATE, INSTALL):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command.split(), check=False, env=environment, stdout=sys.stderr)
        if done.returncode:
            sys.exit(f"No browser, and `{command}` exited with {done.returncode}. See above.")


if __name__ == "__main__":
    main()
