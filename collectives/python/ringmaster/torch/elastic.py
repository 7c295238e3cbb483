"""Elastic training of PyTorch models: everything of ringmaster.elastic, TorchState and
ElasticDataLoader.
"""

import sys

import torch

from ringmaster.elastic import ElasticSampler, HostsUpdatedInterrupt, ObjectState, State, run
from ringmaster.torch.data_loader import ElasticDataLoader
from ringmaster.torch.devices import to_host

__all__ = ["ElasticDataLoader", "ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State",
           "TorchState", "run"]


class TorchState(ObjectState):
    """TorchState(model=..., optimizer=..., sampler=..., best=0.0): modules, optimizers, schedulers
    and samplers by their state_dict(), everything else by value, and the random state.

    A sampler given beside a DistributedOptimizer is bound to it.
    """

    def __init__(self, model=None, optimizer=None, **others):
        given = {name: value for name, value in (("model", model), ("optimizer", optimizer))
                 if value is not None}
        super().__init__(**dict(others, **given))

    def capture(self):
        captured = super().capture()
        return dict(captured, parts=to_host(captured["parts"]))

    def random_states(self):
        states = dict(super().random_states(), torch=torch.get_rng_state().numpy().tobytes(),
                      numpy=_numpy_state())
        if torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state().numpy().tobytes()
        return states

    def set_random_states(self, states):
        super().set_random_states(states)
        if "torch" in states:
            kept = bytearray(states["torch"])
            torch.set_rng_state(torch.frombuffer(kept, dtype=torch.uint8))
        if "cuda" in states and torch.cuda.is_available():
            kept = bytearray(states["cuda"])
            torch.cuda.set_rng_state(torch.frombuffer(kept, dtype=torch.uint8))
        _set_numpy_state(states.get("numpy"))


def _numpy_state():
    # torch imports numpy where it is installed; a script that uses it sees the same generator
    numpy = sys.modules.get("numpy")
    return numpy.random.get_state() if numpy else None


def _set_numpy_state(state):
    if state is not None:
        import numpy
        numpy.random.set_state(state)
