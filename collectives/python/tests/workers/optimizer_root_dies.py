"""Rank 0 dies when the others have begun broadcast_optimizer_state() and looked who the root is.

They say what they got. Whatever moves meanwhile, nobody may send or load what isn't the root's.
"""

import os
import signal
import sys
import time

import torch

import ringmaster.torch as rm
from ringmaster import _core

folder = sys.argv[1]
rm.init()
me, waited = rm.rank(), []


def then_ranks_move(real):

    def looked(*args):
        result = real(*args)
        if not waited:
            waited.append(True)
            open(os.path.join(folder, str(me)), "w").close()
            while len(os.listdir(folder)) < 2:
                time.sleep(0.01)
            while real_size() == 3:
                time.sleep(0.01)
        return result

    return looked


real_size = _core.size
parameter = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([parameter], lr=0.1 * (me + 1))
if me == 0:
    while len(os.listdir(folder)) < 2:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
_core.rank, _core.worker_at = then_ranks_move(_core.rank), then_ranks_move(_core.worker_at)
try:
    rm.broadcast_optimizer_state(optimizer, 0)
    print("the learning rate of", round(optimizer.param_groups[0]["lr"], 3))
except rm.RootLostError:
    print("lost")
