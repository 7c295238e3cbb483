"""What Horovod's ElasticSampler lets a script see and do, beside what both have: its attributes,
and samples that the script itself records as done.
"""

import itertools

from ringmaster import _core


class SamplerNames:
    """For ElasticSampler, on what it keeps: the order of the epoch, and what of it is left.

    Indices are those of the dataset; positions are places in the epoch's order.
    """

    @property
    def num_replicas(self):
        """The world's size in this step."""
        return _core.step_view().size

    @property
    def rank(self):
        """This worker's rank in this step."""
        return _core.step_view().rank

    @property
    def num_samples(self):
        """How many samples each rank has, as len() says."""
        return len(self)

    @property
    def total_size(self):
        """Of all ranks together; some samples twice, so that all have the same number."""
        return self.num_samples * self.num_replicas

    @property
    def remaining_indices(self):
        """Of the samples of this epoch that are not done yet, in the epoch's order."""
        return [self._order[position] for position in self._left()]

    @property
    def processed_indices(self):
        """Of the samples of this epoch that are done, as a set."""
        return set(range(self._count)) - set(self.remaining_indices)

    def get_indices(self, batch_idx, batch_size):
        """Of the `batch_idx`th batch of this iteration, on this rank."""
        return [self._order[position] for position in self._positions(batch_idx, batch_size)]

    def record_indices(self, indices):
        """Says that this rank has worked on these samples; the next state.commit() counts them."""
        indices = [int(index) for index in indices]
        unknown = [index for index in indices if not 0 <= index < self._count]
        if unknown:
            raise ValueError("indices: %r is no sample, allowed is 0 to %d"
                             % (unknown[0], self._count - 1))
        self._stream = self._stream or []
        if self._place_of is None:
            self._place_of = [0] * self._count
            for position, index in enumerate(self._order):
                self._place_of[index] = position
        self._recorded.extend(sorted({self._place_of[index] for index in indices}))

    def reset(self):
        """For Horovod's scripts: what remains is divided anew whenever an iteration begins; until
        then its length is that of what remains.
        """
        self._length = None

    def record_batch(self, batch_idx, batch_size):
        """Says that the `batch_idx`th batch of this iteration has been worked on, as on all ranks.

        The next commit() of the state that the sampler is in counts what each rank has recorded. In
        no state it counts at once, as for Horovod: the batch of this number of every rank.
        """
        self._recorded.extend(self._positions(batch_idx, batch_size))
        if not self.in_state:
            size = self._replicas
            begin = batch_idx * batch_size * size
            self.merge([self._iterated[begin:begin + batch_size * size], self._recorded])

    @property
    def processed_num(self):
        """How many samples of this epoch are done."""
        return self._count - self.remaining

    def _positions(self, batch_idx, batch_size):
        if self._stream is None:
            raise RuntimeError("batch_idx: is %r, but no iteration has begun" % (batch_idx,))
        begin = batch_idx * batch_size
        return self._stream[begin:begin + batch_size]

    @property
    def streams(self):
        """True if this epoch is worked on in Horovod's way on this rank (and so on all)."""
        return self._stream is not None

    def recorded(self):
        """Positions recorded since the last merge."""
        return list(self._recorded)

    def merge(self, recorded_by_rank):
        """Counts what all ranks recorded as done (state.commit does this)."""
        done = {position for recorded in recorded_by_rank for position in recorded}
        cursor = max(self._cursor, max(done, default=-1) + 1)
        before = itertools.chain(self._returned, range(self._cursor, cursor))
        self._returned = [position for position in before if position not in done]
        self._cursor = cursor
        self._own_total += len(self._recorded)
        self._recorded = []
