"""Elastic training of PyTorch models: everything of ringmaster.elastic, TorchState and
ElasticDataLoader.
"""

import copy
import sys

import torch

from ringmaster import _objects
from ringmaster.elastic import ElasticSampler, HostsUpdatedInterrupt, ObjectState, State, run
from ringmaster.torch.data_loader import ElasticDataLoader

__all__ = ["ElasticDataLoader", "ElasticSampler", "HostsUpdatedInterrupt", "ObjectState", "State",
           "TorchState", "run"]


class TorchState(ObjectState):
    """TorchState(model=..., optimizer=..., sampler=..., best=0.0): modules, optimizers, schedulers
    and samplers by their state_dict(), everything else by value, and the random state.

    A sampler given beside a DistributedOptimizer is bound to it.
    """

    def __init__(self, model=None, optimizer=None, **others):
        given = dict(others, **{name: value for name, value in
                                (("model", model), ("optimizer", optimizer)) if value is not None})
        self._parts = {name: value for name, value in given.items()
                       if hasattr(value, "state_dict") and hasattr(value, "load_state_dict")}
        for name, part in self._parts.items():
            setattr(self, name, part)
        self._bind_sampler()
        super().__init__(**{name: v for name, v in given.items() if name not in self._parts})

    def __setattr__(self, name, value):
        """A part that is replaced is the new one from then on, also for joiners and restore()."""
        if name in self.__dict__.get("_parts", ()):
            self._parts[name] = value
        super().__setattr__(name, value)

    def _bind_sampler(self):
        for part in self._parts.values():
            if hasattr(part, "adopt"):
                part.adopt(self, self._samplers()[0] if len(self._samplers()) == 1 else None)

    def _samplers(self):
        return [part for part in self._parts.values() if isinstance(part, ElasticSampler)]

    def save(self):
        super().save()
        self._kept_parts = copy.deepcopy(self._part_states())

    def restore(self):
        super().restore()
        self._load_parts(copy.deepcopy(self._kept_parts))

    def capture(self):
        return dict(super().capture(), parts=self._part_states())

    def install(self, captured):
        self._load_parts(captured["parts"])
        super().install(captured)

    def random_states(self):
        return dict(super().random_states(), torch=torch.get_rng_state().numpy().tobytes(),
                    numpy=_numpy_state())

    def set_random_states(self, states):
        super().set_random_states(states)
        if "torch" in states:
            kept = bytearray(states["torch"])
            torch.set_rng_state(torch.frombuffer(kept, dtype=torch.uint8))
        _set_numpy_state(states.get("numpy"))

    def prepare_commit(self):
        for index, sampler in enumerate(self._samplers()):
            if sampler.streams:
                name = "ringmaster.sampler.%d" % index
                sampler.merge(_objects.allgather_object(sampler.recorded(), name))

    def _part_states(self):
        return {name: part.state_dict() for name, part in self._parts.items()}

    def _load_parts(self, states):
        if set(states) != set(self._parts):
            raise ValueError("the state has %s here and %s elsewhere: all workers must run the "
                             "same script" % (sorted(self._parts), sorted(states)))
        for name, part in self._parts.items():
            part.load_state_dict(states[name])


def _numpy_state():
    # torch imports numpy where it is installed; a script that uses it sees the same generator
    numpy = sys.modules.get("numpy")
    return numpy.random.get_state() if numpy else None


def _set_numpy_state(state):
    if state is not None:
        import numpy
        numpy.random.set_state(state)
