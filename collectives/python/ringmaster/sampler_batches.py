"""Batches: an epoch of an ElasticSampler as shares of global batches, cut when they are asked for
or ahead of that.

A share that was cut ahead counts only if it is what would be cut now. After a change of the world,
or when samples came back, it is not: then all that was cut ahead is dropped and cut anew. So what
is trained never depends on how far somebody has read ahead.
"""

from collections import deque

from ringmaster import _core
from ringmaster._numbers import whole


class Batches:
    """This rank's indices of each global batch of the epoch. Each iteration is (the rest of) one
    epoch; at its end the sampler's next epoch begins.
    """

    def __init__(self, sampler, global_batch):
        self.sampler = sampler
        self.global_batch = whole(global_batch)
        if self.global_batch is None or self.global_batch < 1:
            raise ValueError("global_batch: is %r, must be a whole number, 1 or more"
                             % (global_batch,))

    def __len__(self):
        """How many global batches are left of this epoch."""
        return -(-self.sampler.remaining // self.global_batch)

    def __iter__(self):
        _core.enter()
        epoch = self.sampler.epoch
        while self.sampler.epoch == epoch:
            cut = self.sampler.cut(self.global_batch)
            if self.sampler.hand_out(cut):
                yield self.sampler.indices(cut)


class AheadBatches:
    """Batches for a loader that reads ahead of the training: its batch sampler, and what it has
    loaded, in order.
    """

    def __init__(self, batches):
        self.batches = batches
        self._sampler = batches.sampler
        self._cuts = deque()  # asked for by the loader, and not handed out yet

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        """For the loader: indices, as far ahead as it asks. An empty share is a sample, too,
        because a loader can make a batch of nothing else.
        """
        self._cuts.clear()
        while True:
            ahead = sum(len(cut.window) for cut in self._cuts)
            cut = self._sampler.cut(self.batches.global_batch, ahead)
            if not cut.window:
                return
            self._cuts.append(cut)
            yield self._sampler.indices(cut) or [0]

    def follow(self, load, without_rows):
        """Yields the epoch's batches. `load()` begins to load what iter(self) gives, and returns
        an iterator of the batches; `without_rows` makes a batch of one sample an empty one.
        """
        _core.enter()
        epoch = self._sampler.epoch
        while self._sampler.epoch == epoch:
            for batch in load():
                cut = self._cuts.popleft()
                if self._sampler.epoch != epoch or not self._sampler.hand_out(cut):
                    break
                yield batch if cut.own else without_rows(batch)
            else:
                rest = self._sampler.cut(self.batches.global_batch)
                if not rest.window:
                    self._sampler.hand_out(rest)  # the epoch's end
