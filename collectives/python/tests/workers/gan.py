"""Two optimizers that take turns: the second one made steps first, and twice."""

import os

import torch

import ringmaster.torch as rm

rm.init()
torch.manual_seed(7)
models = [torch.nn.Linear(2, 1) for _ in range(2)]
generator, critic = [rm.DistributedOptimizer(torch.optim.SGD(m.parameters(), lr=0.1))
                     for m in models]
spent = rm.DistributedOptimizer(torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1),
                                end_step=False)  # of another phase
state = rm.elastic.TorchState(generator=models[0], critic=models[1], optimizers=generator, batch=0)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()


@rm.elastic.run(in_place=True)
def train(state):
    while state.batch < 200:
        for _ in range(2):
            step(models[1], critic)
        state.batch += 1
        step(models[0], generator)
        assert rm.last_step().step == state.batch
    return [p.tolist() for model in models for p in model.parameters()]


everyone = rm.allgather_object(train(state))
assert all(other == everyone[0] for other in everyone) and len(everyone) == int(os.environ["SIZE"])
