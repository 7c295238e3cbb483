"""A rank dies when all have gathered, and the others hear of it before they look at what is theirs:
the gradient is that of their own rows.
"""

import os
import signal
import sys

import torch

import ringmaster.torch as rm
from meetings import tell, wait_for, wait_until_ranks_have_moved
from ringmaster.torch import starting

folder = sys.argv[1]
rm.init()
rm.end_step()
me = rm.rank()


def waits_until_ranks_have_moved(real=starting.start_allgathers):

    class Waits:

        def __init__(self, handle):
            self.handle = handle

        def wait(self):
            result = self.handle.wait()
            tell(folder, str(me))
            if me == 0:
                wait_for(folder, "1", "2")
                os.kill(os.getpid(), signal.SIGKILL)
            wait_until_ranks_have_moved(3)
            return result

    starting.start_allgathers = lambda *options: Waits(real(*options))


waits_until_ranks_have_moved()
mine = torch.full((2,), float(me), requires_grad=True)
result = rm.allgather(mine)
assert result.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], result
(result * torch.arange(6.0) * me).sum().backward()
# Each place's factor is the place times the rank, and the mean is over ranks 1 and 2.
assert mine.grad.tolist() == [1.5 * (2 * me), 1.5 * (2 * me + 1)], mine.grad
print("its own rows", flush=True)
rm.end_step()
