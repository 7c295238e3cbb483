"""elastic.run leaves each rank its own random state, unless all had the same."""

import os
import random

import torch

import ringmaster.torch as rm

rm.init()
own = rm.rank() if os.environ["SEEDS"] == "own" else 0
if rm.is_joining():
    own = 77 if os.environ["SEEDS"] == "own" else 1234
random.seed(own)
torch.manual_seed(own)
state = rm.elastic.ObjectState(batch=0) if os.environ["STATE"] == "object" else \
    rm.elastic.TorchState(batch=0)


def draw():
    return random.random() if os.environ["STATE"] == "object" else torch.rand(1).item()


@rm.elastic.run(in_place=True)
def train(state):
    while state.batch < 60 or rm.size() < 3:
        draw()
        state.batch += 1
        state.commit()
    return draw()


drawn = rm.allgather_object(train(state))
assert len(drawn) == 3 and len(set(drawn)) == (3 if os.environ["SEEDS"] == "own" else 1), drawn
