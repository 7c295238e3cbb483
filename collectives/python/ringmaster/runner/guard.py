"""`python3 guard.py PARENT PROGRAM ARGS...`: becomes PROGRAM, which the kernel asks to end, by
SIGTERM, when its parent, the process PARENT, has died.

Run by its path and with the standard library alone: it starts in a hundredth of a second.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        sys.exit(128 + signal.SIGTERM)  # it has died before
    os.execv(sys.argv[2], sys.argv[2:])
