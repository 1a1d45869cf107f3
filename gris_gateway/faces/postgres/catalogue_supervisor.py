"""Runs a program of PostgreSQL with limits, until it or the process that started it ends; a program of its own.

    python catalogue_supervisor.py FOLDER KILOBYTES USER GROUP COMMAND..

FOLDER, unless it is empty, is removed behind it. KILOBYTES is the most address space of each of its processes. USER and
GROUP are numbers, or empty for those of this process. It ends when its input does, which is when its parent does,
however that ends. Its exit code is that of the command. It needs no shell, for images have none, and no package.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path


def main(folder: str, kilobytes: str, user: str, group: str, *command: str) -> int:
    """Run the command, and return its exit code."""
    # Shells let what they start in the background ignore it. Before PostgreSQL handles it, it would be lost.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    _limit(int(kilobytes) * 1024)
    whom = {"user": int(user), "group": int(group), "extra_groups": ()} if user else {}
    child: subprocess.Popen[bytes]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **whom)  # type: ignore[call-overload]  # noqa: S603
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    code = child.wait()
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)
    return code


def _end_with_input(child: subprocess.Popen[bytes]) -> None:
    os.read(0, 1)
    child.send_signal(signal.SIGQUIT)


def _limit(most: int) -> None:
    """Take from this process, and from those that it starts, what questions about data may need."""
    os.nice(5)
    # Not every system has these.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with suppress(OSError):
        # Where memory runs out it is given up first.
        Path("/proc/self/oom_score_adj").write_text("1000")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
