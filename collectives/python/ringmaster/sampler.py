"""ElasticSampler: which samples a rank works on, and which count as done.

A pure function of (seed, epoch, samples done, rank, size): all ranks compute the same order and the
same pool of samples that are still to do, and each takes its own share of the next batch. Nothing
is sent for that.

A sample is done when the reduction of a step says that its gradient is in it, not when it was
handed out. For this every rank adds its *contribution* to the gradient's own reduction: a vector
with a 1 for each sample of the global batch that is its own. The sum of the vectors is part of one
result that all survivors share, so all of them settle the same samples; the share of a worker that
died first has 0 there and goes back into the pool of the same epoch.
"""

import itertools
import random
import weakref
from collections import namedtuple

from ringmaster import _core
from ringmaster._numbers import whole
from ringmaster.sampler_batches import Batches
from ringmaster.sampler_names import SamplerNames

# What a settled step did: `counted` are the samples in the step's gradient, in the order of
# the batch and the same on all ranks; `own` are those of this rank; `void` says that the step did
# not count at all (see settle).
Settled = namedtuple("Settled", "counted own void")

# A rank's part of a global batch: positions in the order of `epoch`, of the whole batch (shorter
# than `global_batch` at the epoch's end) and of this rank.
Share = namedtuple("Share", "epoch global_batch window own")


class ElasticSampler(SamplerNames):
    """Hands out every sample of an epoch (one pass over the data) exactly once, whichever workers
    come, leave or die meanwhile.

    Two ways to use it, not to be mixed:

    * `for indices in sampler.batches(global_batch)`: this rank's share of each global batch, whose
      size stays the same when the world's does not. Exact with in-place recovery. Also as
      `batch_sampler` of an ElasticDataLoader, which may have workers that read ahead, or of torch's
      own with num_workers=0.
    * as Horovod's: `DataLoader(dataset, batch_size=n, sampler=sampler)`, `record_batch()` after
      each batch, `state.commit()`. Samples of a worker that died since its last commit come again,
      if the others commit before they call set_epoch() for the next epoch.
    """

    def __init__(self, dataset, shuffle=True, seed=0):
        """`dataset`: anything with a length, or the number of samples."""
        self.dataset = dataset
        self._count = len(dataset) if hasattr(dataset, "__len__") else whole(dataset)
        if self._count is None:
            raise ValueError("dataset: is %r, must be something with a length, or the number of "
                             "samples" % (dataset,))
        if self._count < 1:
            raise ValueError("dataset: is empty; a sampler needs one sample or more")
        self.shuffle = shuffle
        self.seed = seed
        self._own_total = 0
        self._at_epoch_end = []  # weak references to methods
        self._empty, self._empty_in = 0, None  # see _empty_settles()
        self._iterated, self._replicas = [], 1  # of all ranks, in the iteration that was begun last
        self.in_state = False  # of an elastic.State, whose commit() counts what was recorded
        self.last_settled = None  # the Settled of the last step; None: none since the state came
        self._begin_epoch(0)

    def _begin_epoch(self, number):
        self._epoch = number
        self._order = list(range(self._count))
        if self.shuffle:
            random.Random("%d/%d" % (self.seed, number)).shuffle(self._order)
        self._returned = []  # positions before the cursor that are to do again
        self._cursor = 0  # positions from here on were never handed out in a settled step
        self._handed_out = []  # Shares since the last settled step
        self._forget_settled()
        self._stream = None
        self._length = None  # of the iteration that is under way
        self._recorded = []
        self._place_of = None  # by index of the dataset: its position, once somebody asks

    # ---- The native way

    batches_per_step = 1  # a DistributedOptimizer sets its backward_passes_per_step

    @property
    def epoch(self):
        """The number of this pass over the data, from 0."""
        return self._epoch

    @property
    def done(self):
        """Samples that this process has contributed to completed steps, over all epochs."""
        return self._own_total

    @property
    def remaining(self):
        """Samples of this epoch that are not done yet."""
        return len(self._returned) + self._count - self._cursor

    def batches(self, global_batch):
        """This rank's indices of each global batch of the epoch, for a loop over them; at its end
        comes the next epoch.

        The share is empty when fewer samples than ranks remain; take part in the step all the same.
        """
        return Batches(self, global_batch)

    def cut(self, global_batch, ahead=0):
        """The Share of this rank that follows what was handed out and `ahead` further samples, in
        the world of this step. At the end of the epoch its window is empty.
        """
        view = _core.step_view()
        taken = ahead + sum(len(handed.window) for handed in self._handed_out)
        window = self._window(taken, taken + global_batch)
        place = (view.rank + self._empty_settles()) % view.size
        return Share(self._epoch, global_batch, window, share(window, place, view.size))

    def _empty_settles(self):
        """How often in this step nobody's samples were in a reduction. Then all that is left may be
        the share of a worker that is dead, but counts until the step ends: the next one takes it.
        """
        return self._empty if self._empty_in is _core.last_step() else 0

    def indices(self, cut):
        """The samples of a Share, as indices of the dataset."""
        return [self._order[position] for position in cut.own]

    def hand_out(self, cut):
        """This rank trains on a Share now. False: it is no longer what would be cut, or the epoch
        is at its end; the next one has then begun.
        """
        if len(self._handed_out) >= self.batches_per_step:
            raise RuntimeError(
                "a batch was asked for before the step of the last one was settled: give the "
                "sampler to the DistributedOptimizer or to a TorchState with it, call its step() "
                "for each batch, and let an ElasticDataLoader read ahead, but no other one "
                "(num_workers=0)")
        if cut != self.cut(cut.global_batch):
            return False
        if not cut.window:
            self._end_epoch()
            return False
        self._forget_settled()
        self._handed_out.append(cut)
        return True

    def on_epoch_end(self, method):
        """Calls method(newest) where an epoch ends with batches that no step has settled: it makes
        the step. `newest`: it is the last one that was given. An optimizer that was replaced may
        live on, and makes none.
        """
        self._at_epoch_end.append(weakref.WeakMethod(method))

    def let_go(self, method):
        """It is not called at an epoch's end any more."""
        self._at_epoch_end = [one for one in self._at_epoch_end if one() != method]

    def _end_epoch(self):
        if self._handed_out:
            self._at_epoch_end = [one for one in self._at_epoch_end if one() is not None]
            methods = [one() for one in self._at_epoch_end]
            for method in methods:
                if method is not None:
                    method(method is methods[-1])
        if self._handed_out:
            raise RuntimeError(
                "the epoch has ended with %d batch(es) that no step has settled, of the %d of a "
                "step: make a step with what is there at the end of each epoch"
                % (len(self._handed_out), self.batches_per_step))
        # That step may have brought samples of a dead worker back.
        if not self.remaining:
            self._begin_epoch(self._epoch + 1)

    def _window(self, begin, end):
        """Of the positions that are to do, the `begin`th up to the `end`th."""
        window = self._returned[begin:end]
        first = self._cursor + max(0, begin - len(self._returned))
        window.extend(range(first, min(self._count, first + end - begin - len(window))))
        return window

    def contribution(self):
        """1.0 for each position handed out to this rank since the last settled step, else 0.0.

        Of the same length on every rank; empty if nothing was handed out. What one optimizer has
        settled stays until the step has ended, or the next batch comes: another one may reduce its
        gradients of the same samples.
        """
        flags = []
        for handed in self._of_step():
            mine = set(handed.own)
            flags.extend(1.0 if position in mine else 0.0 for position in handed.window)
        return flags

    def parts(self):
        """Of each batch handed out since the last settled step, or of those that contribution() is
        of: how much of it is this rank's.
        """
        return [len(handed.own) / len(handed.window) for handed in self._of_step()]

    def _of_step(self):
        if not self._handed_out and self._settled_in is _core.last_step():
            return self._settled
        return self._handed_out

    def _forget_settled(self):
        self._settled = []  # Shares
        self._settled_in = None  # the step that had ended before

    def give_back(self):
        """The step will not be: all that was handed out since the last settled step goes back."""
        self._count_as_done([p for handed in self._handed_out for p in handed.window], set())
        self._handed_out = []
        self._forget_settled()

    def settle(self, sums):
        """Takes the summed contributions of all ranks that took part: samples with a 1 are done.

        A sum above 1 means that two ranks took the same sample: the world changed between their
        looks at it, before the step. Such a step is void: nothing counts, all goes back. Returns
        Settled. Of samples that were settled already, as by another optimizer, nothing counts again.
        """
        shares, again = self._of_step(), not self._handed_out
        positions = [position for handed in shares for position in handed.window]
        mine = {position for handed in shares for position in handed.own}
        counts = [round(float(value)) for value in sums]
        void = any(count > 1 for count in counts) or not any(counts)
        if again and not shares:  # the step has ended meanwhile
            return Settled([], [], void)
        if not again and not any(counts):
            self._empty, self._empty_in = self._empty_settles() + 1, _core.last_step()
        if len(sums) != len(positions):
            raise ValueError("sums: has %d values, must have %d" % (len(sums), len(positions)))
        counted = [] if void else [p for p, count in zip(positions, counts) if count]
        if again:
            return Settled([self._order[position] for position in counted], [], void)
        self._count_as_done(positions, set(counted))
        self._settled, self._settled_in, self._handed_out = shares, _core.last_step(), []
        own = [self._order[position] for position in counted if position in mine]
        self._own_total += len(own)
        self.last_settled = Settled([self._order[position] for position in counted], own, void)
        return self.last_settled

    def _count_as_done(self, handed_out, done):
        back = [position for position in handed_out if position not in done]
        seen = set(handed_out)
        self._returned = sorted(back + [p for p in self._returned if p not in seen])
        self._cursor = max([self._cursor] + [position + 1 for position in handed_out])

    # ---- Horovod's way

    def set_epoch(self, epoch):
        """Goes to epoch number `epoch`, in which all samples are to do.

        The same number again: after an iteration this is the epoch's end, as Horovod's scripts say
        it, and all its samples are to do again. Before one the epoch goes on where it was: a state
        has been restored, or the training function has been entered again.
        """
        if epoch != self._epoch or self._stream is not None:
            self._begin_epoch(epoch)

    def begin_next_epoch(self):
        """Where the last samples have been settled. Other optimizers may still reduce theirs."""
        settled = self._settled, self._settled_in
        self.set_epoch(self._epoch + 1)
        self._settled, self._settled_in = settled

    def forget_iteration(self):
        """The training function is entered again, on all ranks: nobody iterates any more, and what
        no step has settled goes back.
        """
        self._stream = self._length = None
        self.give_back()

    def __iter__(self):
        """This rank's samples of what remains; the division is made here, once."""
        view = _core.step_view()
        positions = self._left()
        short = -len(positions) % view.size  # equal counts for all, as Horovod does
        positions += list(itertools.islice(itertools.cycle(positions), short if positions else 0))
        self._iterated, self._replicas = positions, view.size
        self._stream = positions[view.rank::view.size]
        self._length = len(self._stream)
        return iter([self._order[position] for position in self._stream])

    def __len__(self):
        """How many samples this rank has: of the iteration that is under way, else of what
        remains. What is recorded meanwhile does not change it: scripts divide by it.
        """
        if self._length is not None:
            return self._length
        view = _core.step_view()
        return -(-self.remaining // view.size)

    def _left(self):
        return self._returned + list(range(self._cursor, self._count))

    # ---- State

    def state_dict(self):
        return {"seed": self.seed, "count": self._count, "epoch": self._epoch,
                "cursor": self._cursor, "returned": list(self._returned)}

    def load_state_dict(self, state):
        """What state_dict() of this sampler, or of Horovod's, has returned. ValueError: it is
        something else, or of another number of samples.
        """
        _check_state(state)
        self._empty, self._empty_in = 0, None
        if "processed_indices" in state:
            self._begin_where_are_done(state["epoch"], state["processed_indices"])
            return
        if "processed_num" in state:
            order = list(range(self._count))
            if self.shuffle:
                random.Random(self.seed + state["epoch"]).shuffle(order)  # Horovod's order
            self._begin_where_are_done(state["epoch"], order[:state["processed_num"]])
            return
        if state["count"] != self._count:
            raise ValueError("dataset: has %d samples here and %d in the state: all workers must "
                             "read the same data" % (self._count, state["count"]))
        self.seed = state["seed"]
        self._begin_epoch(state["epoch"])
        self._cursor, self._returned = state["cursor"], list(state["returned"])
        self.last_settled = None


    def _begin_where_are_done(self, epoch, indices):
        self._begin_epoch(epoch)
        done = set(indices)
        self._returned = [p for p, index in enumerate(self._order) if index not in done]
        self._cursor, self.last_settled = self._count, None


_HAS = {"seed", "count", "epoch", "cursor", "returned"}
_HOROVODS = ("processed_indices", "processed_num")  # of older versions, and of 0.28


def _check_state(state):
    wanted = "must be what state_dict() of this sampler, or of Horovod's, has returned"
    if not isinstance(state, dict):
        raise ValueError("state: is a %s, %s" % (type(state).__name__, wanted))
    lacks = ({"epoch"} if any(name in state for name in _HOROVODS) else _HAS) - set(state)
    if lacks:
        raise ValueError("state: lacks %s, %s" % (", ".join(map(repr, sorted(lacks))), wanted))


def share(window, rank, size):
    """The part of `window` that is `rank`'s: contiguous, sizes differ by one at most."""
    begin, end = len(window) * rank // size, len(window) * (rank + 1) // size
    return window[begin:end]
