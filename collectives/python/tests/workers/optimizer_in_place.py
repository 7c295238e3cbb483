"""A DistributedOptimizer that is made in a training function with in_place=True: one that joins
would have to load its state before it makes it.
"""

import torch

import ringmaster.torch as rm
from expected_errors import expect

rm.init()
model = torch.nn.Linear(2, 1)


def make():
    return rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))


def step(optimizer):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


@rm.elastic.run(in_place=True)
def refused(state):
    optimizer = make()
    expect(RuntimeError, optimizer.zero_grad, "before elastic.run")


@rm.elastic.run(in_place=True)
def allowed(state):
    step(state.optimizer)
    state.optimizer = make()  # the state gives it to joiners from now on
    step(state.optimizer)


refused(rm.elastic.TorchState(model=model))
allowed(rm.elastic.TorchState(model=model, optimizer=make()))
rm.shutdown()
