"""A model with buffers, which DistributedDataParallel takes from rank 0 in each step: rank 0 dies
in the middle of that, and the training function is entered again.
"""

import os
import signal
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import ringmaster.torch as rm
import ringmaster.torch.distributed as rmd


@rm.elastic.run
def train(state):
    entered.append(dist.get_world_size())
    model = rmd.exact_mean(DistributedDataParallel(state.model))
    while state.batch < 30:
        if state.batch == 10 and entered == [3] and me == 0:
            time.sleep(0.3)  # the others wait for its buffers by now
            os.kill(os.getpid(), signal.SIGKILL)
        state.optimizer.zero_grad()
        model(torch.randn(4, 3)).sum().backward()
        state.optimizer.step()
        state.batch += 1
        state.commit()


torch.set_num_threads(1)
dist.init_process_group("ringmaster")
me, entered = dist.get_rank(), []
torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
state = rm.elastic.TorchState(model=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.01),
                              batch=0)
train(state)
everyone = rm.allgather_object([p.tolist() for p in net.parameters()] + [state.batch])
assert all(other == everyone[0] for other in everyone), everyone
print("entered", entered, flush=True)
rm.shutdown()
