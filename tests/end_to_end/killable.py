"""A program of ours that is killed with -9 a while after its home is open.

Not here: what it does, and what is left of it (killed_folds, killed_keeping).
"""

import signal
import subprocess
import sys

NEVER = 3600.0  # what is let through is over long before


def killed(module: str, *arguments: object, after: float = NEVER) -> None:
    """Let `python -m MODULE` be killed, if it is not over before; raise where it failed by itself.

    The first line that it writes says that its home is open.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(timeout=after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    if process.returncode not in {0, -signal.SIGKILL}:
        raise subprocess.CalledProcessError(process.returncode, command)
