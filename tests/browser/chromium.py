"""`python -m tests.browser.chromium`: Debian's Chromium, installed where it is absent.

Playwright's own download of a browser is not reached from everywhere; a package of the system is.
What is missing is said in words. Not here: what the browser is asked to do (watching.py).
"""

import os
import shutil
import subprocess
import sys

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
INSTALLING = (
    ("apt-get", "update", "--quiet"),
    ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium"),
)


def found() -> str | None:
    """Return the path of a Chromium of this system."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def main() -> int:
    """See to it that there is one; return 1, with words, where there is none in the end."""
    if found():
        return 0
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return missing("it is installed by apt-get as root, and this is neither")
    sys.stdout.write("installing Debian's package chromium, once\n")
    for command in INSTALLING:
        done = subprocess.run(command, check=False)
        if done.returncode:
            return missing(f"{' '.join(command)} ended with {done.returncode}; its words are above")
    return 0 if found() else missing("its package was installed and has none of these programs")


def missing(why: str) -> int:
    """Say what is missing."""
    names = ", ".join(PROGRAMS)
    sys.stderr.write(f"no browser to test with ({names}): {why}. Nothing was tested.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
