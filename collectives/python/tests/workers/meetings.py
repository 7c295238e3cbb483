"""What workers of a test wait for, where the test says who calls before whom.

The test's own deadline ends a wait that has no end.
"""

import os
import time

import ringmaster


def tell(folder, name):
    open(os.path.join(folder, name), "w").close()


def wait_for(folder, *names):
    """Until each of these has been told."""
    while not all(os.path.exists(os.path.join(folder, name)) for name in names):
        time.sleep(0.01)


def wait_until_ranks_have_moved(size):
    """Until there are not as many ranks any more: a death has been dealt with."""
    while ringmaster.size() == size:
        time.sleep(0.01)
