"""A training function that is entered again, and after it a loop with an optimizer of its own, each
step of which ends one.
"""

import os
import time

import torch

import ringmaster.torch as rm

rm.init()
torch.manual_seed(3)


def make():
    model = torch.nn.Linear(3, 1)
    return model, rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01))


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    time.sleep(0.02)


first = make()
state = rm.elastic.TorchState(model=first[0], optimizer=first[1], step=0)


@rm.elastic.run
def train(state):
    print("enter", state.step, rm.size(), flush=True)
    while state.step < int(os.environ["STEPS"]):
        step(*first)
        state.step += 1
        state.commit()


train(state)
begun = rm.last_step().step if rm.last_step() else 0
second = make()
if not rm.is_joining():
    rm.broadcast_parameters(second[0].state_dict())
for number in range(int(os.environ["MORE"])):
    step(*second)
    assert rm.last_step().step == begun + number + 1, (rm.last_step(), begun, number)
print("ended with", rm.size(), flush=True)
rm.shutdown()
