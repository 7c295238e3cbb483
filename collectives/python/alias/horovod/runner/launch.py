"""The command `horovodrun`: Horovod's launcher, over `ringmaster run`."""

import sys

import horovod
from ringmaster.runner import horovodrun

__all__ = ["run_commandline"]


def run_commandline():
    """What `horovodrun` does. Ends the process with its exit status."""
    sys.exit(horovodrun.main(version=horovod.__version__))


if __name__ == "__main__":
    run_commandline()
