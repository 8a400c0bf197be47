"""`python -m tests.office.install`: install Debian's LibreOffice Calc if this machine has none."""

import os
import shutil

from tests.browser.install import install

PACKAGE = "libreoffice-calc-nogui"


def find_office() -> str | None:
    """Return the path of LibreOffice on this machine; none if OFFICE=none."""
    if os.environ.get("OFFICE") == "none":
        return None
    return shutil.which("soffice")


if __name__ == "__main__":
    if not find_office() and os.environ.get("OFFICE") != "none":
        install(PACKAGE, "No LibreOffice")
