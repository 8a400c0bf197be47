"""`python -m tests.browser.install`: install Debian's Chromium if this machine has no browser.

Playwright downloads a browser of its own from a host that is not reachable from everywhere.
"""

import os
import shutil
import subprocess
import sys

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
INSTALL = (
    "apt-get -qq -o Acquire::http::Timeout=20 update",
    "apt-get -qq install --yes --no-install-recommends {package}",
)
LONGEST_SECONDS = 300


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome of this machine; none if BROWSER=none."""
    if os.environ.get("BROWSER") == "none":
        return None
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def main() -> None:
    """Install a browser if there is none. Exits with a message if that is not possible."""
    if find_chromium() or os.environ.get("BROWSER") == "none":
        return
    install("chromium", f"No browser ({', '.join(PROGRAMS)})")


def install(package: str, problem: str) -> None:
    """Install a package of Debian. Exits with the problem if that is not possible."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        sys.exit(f"{problem}. Install it: apt-get install {package}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in INSTALL:
        try:
            subprocess.run(
                command.format(package=package).split(),
                check=True,
                env=environment,
                stdout=sys.stderr,
                timeout=LONGEST_SECONDS,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            sys.exit(f"{problem}: {error}")


if __name__ == "__main__":
    main()
