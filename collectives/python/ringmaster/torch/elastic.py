"""Elastic training of PyTorch models: everything of ringmaster.elastic, TorchState and
ElasticDataLoader.
"""

import copy
import sys

import torch

from ringmaster.elastic import (ElasticSampler, HostsUpdatedInterrupt, ObjectState, State,
                                is_list_of_numbers, run)
from ringmaster.torch.arguments import check_has_state
from ringmaster.torch.data_loader import ElasticDataLoader
from ringmaster.torch.devices import to_host

__all__ = ["ElasticDataLoader", "ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State",
           "TorchState", "run"]


class TorchState(ObjectState):
    """TorchState(model=..., optimizer=..., sampler=..., best=0.0): modules, optimizers, schedulers
    and samplers by their state_dict(), everything else by value, and the random state.

    A sampler given beside a DistributedOptimizer is bound to it. `model` and `optimizer` are None
    where they are not given. ValueError: they are something else. Several models have names of
    their own: TorchState(generator=..., judge=...).
    """

    def __init__(self, model=None, optimizer=None, **others):
        for name, value, kind in (("model", model, "a torch.nn.Module"),
                                  ("optimizer", optimizer, "an optimizer")):
            if value is not None:
                check_has_state(name, value, kind)
        super().__init__(model=model, optimizer=optimizer, **others)

    def copied(self, value, before):
        """In the memory of the last copy where that fits: a new one costs three times as much."""
        if isinstance(value, torch.Tensor):
            if not _fits(before, value):
                return value.detach().clone()
            before.copy_(value.detach())
            return before
        if isinstance(value, dict):
            made = copy.copy(value)  # with what a module's state_dict() says of its versions
            for key, part in value.items():
                made[key] = self.copied(part, _part(before, dict, key))
            return made
        if is_list_of_numbers(value):
            return list(value)
        if type(value) in (list, tuple):
            return type(value)(self.copied(part, _part(before, type(value), index))
                               for index, part in enumerate(value))
        return copy.deepcopy(value)

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


def _fits(before, value):
    return isinstance(before, torch.Tensor) and before.layout == value.layout == torch.strided and \
        (before.shape, before.dtype, before.device) == (value.shape, value.dtype, value.device)


def _part(before, kind, key):
    try:
        return before[key] if isinstance(before, kind) else None
    except (KeyError, IndexError):
        return None


def _numpy_state():
    # torch imports numpy where it is installed; a script that uses it sees the same generator
    numpy = sys.modules.get("numpy")
    return numpy.random.get_state() if numpy else None


def _set_numpy_state(state):
    if state is not None:
        import numpy
        numpy.random.set_state(state)
