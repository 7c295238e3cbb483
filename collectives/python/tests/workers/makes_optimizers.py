"""Survivors of a death that make more optimizers than a joiner does, as scripts do that set them up for
the new size: "function": with the model, whenever the training function is entered; "callback": in
a reset callback, for the same parameters, in the place of that which stood in the state; "after": for
the state's model whenever the function is entered, and another one when it has ended.
"""

import os
import sys
import time

import torch

import ringmaster.torch as rm

rm.init()
first = torch.nn.Linear(3, 1)  # of another phase: all have made its optimizer before they begin
rm.DistributedOptimizer(torch.optim.SGD(first.parameters(), lr=0.1))


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(3, 2), rm.SyncBatchNorm(2), torch.nn.Linear(2, 1))


def make_optimizer(model):
    return rm.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5),
                                   named_parameters=model.named_parameters())


def steps(state, model, optimizer):
    print("enter", rm.size(), flush=True)
    while state.step < int(os.environ["STEPS"]):
        time.sleep(0.02)
        optimizer.zero_grad()
        model(torch.rand(4, 3)).sum().backward()
        optimizer.step()
        state.step += 1
        yield
        state.commit()


@rm.elastic.run
def train_made_inside(state):
    model = make_model()
    optimizer = make_optimizer(model)
    if state.weights is None:
        state.weights = rm.broadcast_object(model.state_dict())
    model.load_state_dict(state.weights)
    for _ in steps(state, model, optimizer):
        state.weights = {name: value.clone() for name, value in model.state_dict().items()}


@rm.elastic.run
def train_made_outside(state):
    for _ in steps(state, state.model, state.optimizer):
        pass


def function():
    state = rm.elastic.ObjectState(weights=None, step=0)
    train_made_inside(state)
    return state.weights


def callback():
    model = make_model()
    state = rm.elastic.TorchState(model=model, optimizer=make_optimizer(model), step=0)

    def reset():
        kept = state.optimizer.state_dict()
        state.optimizer = make_optimizer(model)
        state.optimizer.load_state_dict(kept)

    state.register_reset_callbacks([reset])
    train_made_outside(state)
    return model.state_dict()


@rm.elastic.run
def train_the_states_model(state):
    for _ in steps(state, state.model, make_optimizer(state.model)):
        pass


def after():
    torch.manual_seed(3)
    state = rm.elastic.TorchState(model=make_model(), step=0)
    train_the_states_model(state)
    last = torch.nn.Linear(3, 1)
    rm.broadcast_parameters(last.state_dict())
    optimizer = make_optimizer(last)
    for _ in range(3):
        optimizer.zero_grad()
        last(torch.rand(4, 3)).sum().backward()
        optimizer.step()
    return last.state_dict()


weights = {"function": function, "callback": callback, "after": after}[sys.argv[1]]()
mine = [value.tolist() for value in weights.values()]
assert rm.allgather_object(mine) == [mine] * rm.size()
print("ended with", rm.size(), flush=True)
rm.shutdown()
