"""An elastic script whose state holds counters only: joiners get the parameters from the optimizer."""

import os
import time

import torch

import ringmaster.torch as rm

rm.init()
torch.manual_seed(rm.rank() + os.getpid())  # each process begins with parameters of its own
model = torch.nn.Linear(3, 1)
optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), op=rm.Adasum)
rm.broadcast_parameters(model.state_dict(), root_rank=0)
state = rm.elastic.ObjectState(batch=0)


@rm.elastic.run
def train(state):
    while state.batch < 150:
        time.sleep(0.02)
        optimizer.zero_grad()
        model(torch.full((2, 3), rm.rank() + 1.0)).sum().backward()
        optimizer.step()
        state.batch += 1
        state.commit()
    everyone = rm.allgather_object([p.tolist() for p in model.parameters()])
    assert all(other == everyone[0] for other in everyone), everyone
    print("the same on", rm.size(), flush=True)


train(state)
rm.shutdown()
