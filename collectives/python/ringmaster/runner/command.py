"""The commands `ringmaster`, `kubectl-ringmaster` and `kubectl_complete-ringmaster` of an installation by pip."""

import os
import sys

from ringmaster.runner import program
from ringmaster.runner.errors import ProgramMissing

MACHINE_LACKS = 3  # the exit status, as of `ringmaster`


def main():
    """Becomes the program. It returns an exit status where there is no program that could run."""
    try:
        path = program.find()
        # The program tells by its name how it was called.
        os.execv(path, [os.path.basename(sys.argv[0]), *sys.argv[1:]])
    except (ProgramMissing, OSError) as error:
        print("ringmaster: %s" % error, file=sys.stderr, flush=True)
    return MACHINE_LACKS
