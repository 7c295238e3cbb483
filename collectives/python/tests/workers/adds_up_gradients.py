"""Gradients of four batches add up before a step, and each batch is committed: a training function that
is entered again after a death or a join begins in the middle of the four.
"""

import os
import time

import torch

import ringmaster.torch as rm

PASSES = 4
rm.init()
torch.manual_seed(rm.rank() if not rm.is_joining() else 99)
model = torch.nn.Linear(3, 1)
optimizer = rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
                                    named_parameters=model.named_parameters(),
                                    backward_passes_per_step=PASSES)
state = rm.elastic.TorchState(model=model, optimizer=optimizer, batch=0)


@rm.elastic.run
def train(state):
    print("enter", state.batch, rm.size(), flush=True)
    passes = 0
    while state.batch < int(os.environ["BATCHES"]):
        time.sleep(0.02)
        (model(torch.rand(2, 3)).sum() / PASSES).backward()
        passes += 1
        if passes % PASSES == 0:
            optimizer.step()
            optimizer.zero_grad()
        state.batch += 1
        if state.batch % PASSES != 0:  # so that no entry is at a step
            state.commit()


train(state)
mine = [p.tolist() for p in model.parameters()]
assert rm.allgather_object(mine) == [mine] * rm.size()
print("ended with", rm.size(), flush=True)
rm.shutdown()
