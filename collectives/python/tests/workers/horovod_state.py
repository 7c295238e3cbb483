"""A state of the script's own, derived as for Horovod: save, restore, sync and reset, and nothing
that only Ringmaster knows.
"""

import os
import time

import torch

import horovod.torch as hvd
from horovod.common.elastic import ObjectState, State


class Weights(State):

    def __init__(self):
        super().__init__(bcast_object=hvd.broadcast_object, get_rank=hvd.rank)
        self.weights, self.batch, self.resets = torch.zeros(3), 0, 0
        self.save()

    def save(self):
        self._saved = self.weights.clone(), self.batch

    def restore(self):
        self.weights, self.batch = self._saved[0].clone(), self._saved[1]

    def sync(self):
        print("sync of", hvd.size(), flush=True)
        self.batch = self._bcast_object(self.batch if self._rank() == 0 else None, root_rank=0)
        hvd.broadcast_(self.weights, 0)
        self.save()

    def reset(self):
        self.resets += 1


hvd.init()
state = Weights()
resets = []
state.register_reset_callbacks([lambda: resets.append(state.resets)])


@hvd.elastic.run
def train(state):
    while state.batch < int(os.environ["BATCHES"]):
        time.sleep(0.02)
        state.weights += hvd.allreduce(torch.ones(3))
        state.batch += 1
        state.commit()


train(state)
assert state.weights.tolist() == [state.batch] * 3 and state.batch == int(os.environ["BATCHES"])
assert resets == list(range(1, len(resets) + 1))
state.batch = 0
state.restore()
assert state.batch == int(os.environ["BATCHES"])
try:
    hvd.elastic.run(lambda state: None, in_place=True)(state)
    raise AssertionError("in_place went through")
except ValueError as error:
    assert "sync() of its own" in str(error)


class Derived(ObjectState):
    captured = 0

    def __init__(self, **values):
        super().__init__(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, **values)

    def capture(self):
        self.captured += 1
        return super().capture()


values = Derived(batch=hvd.rank())
assert values.values() == {"batch": hvd.rank()}
values.sync()
assert values.batch == 0 and values.captured == (1 if hvd.rank() == 0 else 0)
hvd.shutdown()
