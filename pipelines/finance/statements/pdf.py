"""Prints a page as PDF, where this machine has a browser. Nothing needs one."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Final

from pipelines.core.files import held_folder

BROWSERS: Final = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge",
)  # fmt: skip
SECONDS: Final = 60
END: Final = 1024  # bytes, in which a whole PDF has its last mark
# The page has no script and no address. The browser itself need not look for any either.
OPTIONS: Final = (
    "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer",
    "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


class NoPdf(Exception):
    """Says why there is no PDF."""


def find_browser() -> str:
    """Return the path of a browser that prints. Raises NoPdf without one."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise NoPdf(f"no browser was found ({', '.join(BROWSERS)})")


def print_page(browser: str, page: str, place: Path) -> bytes:
    """Return a page as PDF, A4. Raises NoPdf.

    `place` is the folder for temporary files: that of statements, where the next command and
    `erase` find what was left by a kill.
    """
    try:
        with held_folder(place) as folder:
            content = _printed(browser, page, folder)
    except OSError as error:
        raise NoPdf(f"its temporary files cannot be written: {error.strerror}") from error
    if not content.startswith(b"%PDF-") or b"%%EOF" not in content[-END:]:
        raise NoPdf(f"{browser} printed no whole PDF")
    return content


def _printed(browser: str, page: str, folder: Path) -> bytes:
    source = folder / "page.html"
    target = folder / "page.pdf"
    source.write_text(page, encoding="utf-8")
    command = [
        browser, *OPTIONS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={target}",
    ]  # fmt: skip
    if os.getuid() == 0:  # it refuses root otherwise
        command.append("--no-sandbox")
    code = _run([*command, source.as_uri()], str(folder))
    if code or not target.exists():
        raise NoPdf(f"{browser} printed nothing, exit code {code}")
    return target.read_bytes()


def _run(command: list[str], folder: str) -> int:
    """Run a browser; return its exit code, which is 0 also where it failed. Raises NoPdf."""
    # Secrets that are in the environment are not for a browser.
    environment = {"PATH": os.defpath, "HOME": folder, "LANG": "C.UTF-8"}
    try:
        process = subprocess.Popen(  # noqa: S603 - a browser of this machine, and our own page
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise NoPdf(f"{command[0]} cannot be run: {error.strerror}") from error
    try:
        return process.wait(SECONDS)
    except BaseException as error:
        # Its own processes go with it: they have the page.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise NoPdf(f"{command[0]} took more than {SECONDS} s") from error
        raise
