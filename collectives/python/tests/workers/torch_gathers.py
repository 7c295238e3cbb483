"""A worker that isn't rank 0 dies where the others gather from all: these enter the training
function again, in the same step, with room for those that are left.
"""

import os
import signal

import torch
import torch.distributed as dist

import ringmaster.torch as rm
import ringmaster.torch.distributed


@rm.elastic.run
def train(state):
    entered.append(dist.get_world_size())
    while state.batch < 20:
        if state.batch == 10 and me == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        parts = [torch.zeros(1) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, torch.tensor([10.0 * dist.get_rank()]))
        assert parts == [10.0 * rank for rank in range(len(parts))], parts
        state.batch += 1
        state.commit()


dist.init_process_group("ringmaster")
me, entered = dist.get_rank(), []
train(rm.elastic.TorchState(batch=0))
print("entered", entered, "rank", dist.get_rank(), flush=True)
rm.shutdown()
