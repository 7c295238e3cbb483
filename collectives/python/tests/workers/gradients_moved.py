"""A rank dies when all have gathered, and the others hear of it before they look at what is theirs:
the gradient is that of their own rows. With COLLECTIVE=reducescatter when all have their parts of
the sum (the one that dies has got no row): the gradient is scaled by the number of those that took
part.
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
victim = 2 if os.environ.get("COLLECTIVE") == "reducescatter" else 0


def waits_until_ranks_have_moved(real):

    class Waits:

        def __init__(self, handle):
            self.handle = handle

        def wait(self):
            result = self.handle.wait()
            tell(folder, str(me))
            if me == victim:
                wait_for(folder, *(str(rank) for rank in range(3) if rank != victim))
                os.kill(os.getpid(), signal.SIGKILL)
            wait_until_ranks_have_moved(3)
            return result

    return lambda *options: Waits(real(*options))


def gathers():
    starting.start_allgathers = waits_until_ranks_have_moved(starting.start_allgathers)
    mine = torch.full((2,), float(me), requires_grad=True)
    result = rm.allgather(mine)
    assert result.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], result
    (result * torch.arange(6.0) * me).sum().backward()
    # Each place's factor is the place times the rank, and the mean is over ranks 1 and 2.
    assert mine.grad.tolist() == [1.5 * (2 * me), 1.5 * (2 * me + 1)], mine.grad
    print("its own rows", flush=True)


def scatters():
    real = starting.start_reducescatters
    starting.start_reducescatters = waits_until_ranks_have_moved(real)
    mine = torch.ones(2, requires_grad=True)
    result = rm.reducescatter(mine, op=rm.Sum)
    assert result.tolist() == [3.0], result
    result.sum().backward()
    assert mine.grad.tolist() == [3.0, 3.0], mine.grad
    print("three took part", flush=True)


if victim == 2:
    scatters()
else:
    gathers()
rm.end_step()
