"""DistributedOptimizer: gradients are reduced while backward runs, and a step has one set of
samples.

Gradients travel in buckets (last layers first). Behind its gradients each bucket carries the rank's
*contribution* (see sampler.py; without a sampler presence.py): the sum says which ranks' gradients
are in the result, and divides it. If a death falls between two buckets of a step, one may have the
dead worker's part and the other not: the sums then differ, all survivors see the same, and all
reduce the step's buckets again from the gradients, which are kept until then. So the gradient of a step is always
exactly the mean over one set of samples, and that set is what the sampler counts as done.
"""

import collections
import contextlib
import itertools
import warnings

from ringmaster import _core, presence
from ringmaster.elastic import Steps, on_dropped
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Adasum, Average, Sum
from ringmaster.torch import adasum_optimizer, optimizer_options
from ringmaster.torch.buckets import SparseBucket, make_buckets
from ringmaster.torch.compression import Compression
from ringmaster.torch.handles import synchronize
from ringmaster.torch.state_of_optimizer import GivesState

__all__ = ["DistributedOptimizer"]

# Large enough that a bandwidth-bound allreduce pays, small enough that some of it hides behind
# backward. A model below it is one bucket.
DEFAULT_BUCKET_BYTES = 16 << 20

# Of optimizers, by process set: the same on all ranks of the set, which run the same script. They
# begin again after a shutdown(): a worker that comes into a later round has made none before it.
_numbers = {}
_core.on_shutdown(_numbers.clear)


class _Distributed(GivesState):
    """The methods that DistributedOptimizer adds to the class of the optimizer it was given."""

    def _ringmaster_init(self, options, buckets, parameters, backward_passes, end_step, sampler):
        self._options = options
        self._backward_passes = backward_passes
        self._ender = Steps.new_ender() if end_step else None
        self._sampler = None
        self._synchronized = False
        self._should_synchronize = True
        self._void = False
        self._contribution = None
        self._launched = 0
        self._buckets = buckets
        self._bucket_of = {p: bucket for bucket in buckets for p in bucket.parameters}
        self._delay = {parameter: backward_passes for parameter in parameters}
        self._accumulators = []  # hooks die with them
        for parameter in self._bucket_of:
            self._hook(parameter)
        self._register_state()
        on_dropped(self._give_up)
        if sampler is not None:
            self.adopt(None, sampler)

    # ---- State for joiners

    def adopt(self, state, sampler):
        """A state that holds this optimizer gives its copy to joiners; `sampler` learns what is
        done.
        """
        super().adopt(state, sampler)
        if sampler is not None and self._sampler is None:
            self._sampler = sampler
            sampler.batches_per_step = self._backward_passes
            sampler.on_epoch_end(self._step_with_the_rest)

    def _step_with_the_rest(self):
        """The epoch has ended before backward_passes_per_step passes were made.

        All ranks come here, also one whose shares were empty and that has made no pass.
        """
        self.step()
        self.zero_grad()

    # ---- While backward runs

    def set_backward_passes_per_step(self, passes):
        """From the next step on: how many backward passes a step has."""
        if int(passes) < 1:
            raise ValueError("passes: is %r, must be 1 or more" % (passes,))
        self._backward_passes = int(passes)
        self._delay = {parameter: self._backward_passes for parameter in self._delay}
        if self._sampler is not None:
            self._sampler.batches_per_step = self._backward_passes

    def _hook(self, parameter):
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            parameter.register_post_accumulate_grad_hook(self._gradient_ready)
            return
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *_: self._gradient_ready(parameter))
        self._accumulators.append(accumulator)

    def _gradient_ready(self, parameter):
        bucket = self._bucket_of[parameter]
        if bucket.handle is not None or self._delay[parameter] <= 0:
            raise AssertionError(
                "a gradient came again before optimizer.step() or synchronize(); for several "
                "backward passes in a step say so with backward_passes_per_step")
        if parameter.grad.is_sparse and not bucket.is_sparse and not self._options.sparse_as_dense:
            bucket = self._split_off(parameter, bucket)
        self._delay[parameter] -= 1
        if self._delay[parameter] == 0:
            bucket.pending.discard(parameter)
            self._launch_ready()

    def _split_off(self, parameter, bucket):
        """Only its first gradient says that a parameter (an embedding's) has sparse ones."""
        number = [other is parameter for other in self._delay].index(True)
        name = "%s.sparse.%d" % (self._options.prefix, number)
        sparse = SparseBucket(name, parameter, self._options.process_set)
        bucket.parameters = [other for other in bucket.parameters if other is not parameter]
        bucket.pending.discard(parameter)
        place = self._buckets.index(bucket)
        self._buckets[place:place + 1] = [bucket, sparse] if bucket.parameters else [sparse]
        self._bucket_of[parameter] = sparse
        return sparse

    def _launch_ready(self):
        """In the buckets' order, so that what is sent first is the same everywhere."""
        while self._launched < len(self._buckets) and not self._buckets[self._launched].pending:
            self._launch(self._buckets[self._launched])
            self._launched += 1

    def _launch(self, bucket):
        if self._contribution is None:
            self._begin_reduction()
        weight, contribution = self._contribution
        bucket.fill(weight / self._options.predivide, contribution, self._options.compression)
        bucket.send()

    def _begin_reduction(self):
        late = _core.is_joining()
        if late:  # these gradients are of parameters from before the state came: they don't count
            _core.enter()
        handed_out = self._sampler.contribution() if self._sampler else []
        if handed_out:
            weight = sum(handed_out) / len(handed_out) if self._options.op == Average else 1.0
            self._contribution = (0.0 if not any(handed_out) else weight, handed_out)
        else:
            self._contribution = (1.0, presence.flags(_core.step_view().rank))
        if late:
            self._contribution = (0.0, [0.0] * len(self._contribution[1]))

    # ---- The step

    def synchronize(self):
        """Waits until the gradients of all buckets are reduced.

        HorovodInternalError: what the ranks gave does not fit together; the next step begins clean.
        """
        for bucket in self._buckets:
            bucket.pending.clear()  # a parameter without a gradient counts as zero
        self._launch_ready()
        if not self._buckets:
            self._synchronized = True
            return
        sums = self._receive_all()
        while any(other != sums[0] for other in sums):
            # A death fell between two buckets. All survivors see the same sums, so all come here.
            for bucket in self._buckets:
                self._launch(bucket)
            sums = self._receive_all()
        divisor = self._settle(sums[0])
        for bucket in self._buckets:
            bucket.scatter(divisor / self._options.predivide)
        self._forget_gradients()
        self._synchronized = True

    def _receive_all(self):
        try:
            return [bucket.receive(self._options.compression) for bucket in self._buckets]
        except Exception:
            self._give_up()
            raise

    def _give_up(self):
        """After an error: no handle may stay, the samples go back, the next step begins clean."""
        for bucket in self._buckets:
            if bucket.handle is not None:
                with contextlib.suppress(Exception):
                    synchronize(bucket.handle)
                bucket.handle = None
            bucket.reset()
        self._forget_gradients()
        self._synchronized = False
        if self._sampler is not None:
            self._sampler.give_back()

    def _forget_gradients(self):
        self._launched = 0
        self._contribution = None
        self._delay = {parameter: self._backward_passes for parameter in self._delay}

    def _settle(self, sums):
        """What to divide by. Tells the sampler which samples are in."""
        self._void = False
        if self._sampler is not None and self._sampler.contribution():
            self._void = self._sampler.settle(sums).void
            total = sum(sums) / len(sums)
        else:
            total = presence.count(sums)
        if total == 0.0 or self._void:
            self._void = True  # the result has no rank's gradient: no update
            return 1.0
        return 1.0 if self._options.op == Sum else total

    @contextlib.contextmanager
    def skip_synchronize(self):
        """For step() after an explicit synchronize(): with optimizer.skip_synchronize(): step()."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        """Waits for the gradients, updates, and ends the step (see docs/python.md)."""
        self._give_state()
        loss = closure() if closure is not None else None
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called after optimizer.synchronize() reduces "
                              "again; use optimizer.skip_synchronize() around step()", stacklevel=2)
            self.synchronize()
        self._synchronized = False
        if not self._void:
            super().step()
        if self._ender is not None:
            Steps.optimizer_stepped(self._ender)
        return loss

    def zero_grad(self, *args, **kwargs):
        if any(missing == 0 for missing in self._delay.values()):
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but "
                                 "before optimizer.step() or optimizer.synchronize()")
        self._give_state()
        _core.enter()  # a joiner of a plain script gets its parameters here, before it uses them
        return super().zero_grad(*args, **kwargs)


# `prefix`: of the names of what is sent.
_Options = collections.namedtuple(
    "_Options", "prefix compression op predivide sparse_as_dense process_set")


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         num_groups=0, groups=None, sparse_as_dense=False,
                         process_set=global_process_set, *, sampler=None, end_step=None,
                         bucket_bytes=DEFAULT_BUCKET_BYTES):
    """Wraps an optimizer: its step() applies the mean (`op`: or Sum) of the ranks' gradients, or
    combines the ranks' own updates (Adasum).

    Returns an object of the optimizer's class that shares its parameters and state. A wrong
    argument is a ValueError that names it.

    optimizer: any torch.optim.Optimizer but LBFGS, its parameters on the CPU or on one GPU.
    named_parameters: checked, if given: unique names for all of the optimizer's parameters.
    compression: what gradients travel as, see Compression.
    backward_passes_per_step: gradients of so many backward passes add up before they are reduced.
    gradient_predivide_factor: gradients are divided by it before they are added up, and the mean is
        made of the rest after it: for sums that float16 could not hold. Only with Average.
    groups: which gradients travel together, as lists of parameters, or a number of groups. Without
        it, and for the others, buckets of `bucket_bytes` bytes. `num_groups` is the older name.
    sparse_as_dense: sparse gradients (of an Embedding(sparse=True)) are made dense. Else they stay
        sparse and travel by allgather; all ranks must have one in the first step that has any.
    process_set: the ranks whose gradients are reduced. On the others step() is the optimizer's own.
    sampler: an ElasticSampler whose batches() feed the loss; the mean is then over samples, not
        over ranks.
    end_step: whether step() ends the step for all ranks, or leaves that to state.commit() or
        end_step(). By default it does, unless the optimizer has a process set.
    """
    optimizer_options.check(optimizer, named_parameters, backward_passes_per_step, op,
                            gradient_predivide_factor, sampler, process_set)
    number = process_set.number()
    parameters = [p for p in optimizer_options.parameters_of(optimizer) if p.requires_grad]
    ends_step = not number if end_step is None else end_step
    if op == Adasum:
        member = not number or process_set.included()
        return adasum_optimizer.wrap(optimizer, _prefix(number), parameters if member else [],
                                     int(backward_passes_per_step), ends_step, process_set)
    lists = optimizer_options.lists_of_groups(num_groups, groups, parameters)
    options = _Options(_prefix(number), compression, op, float(gradient_predivide_factor),
                       sparse_as_dense, process_set)
    buckets = []
    if not number or process_set.included():
        buckets = make_buckets(parameters, bucket_bytes, lists, options.prefix, process_set)
    kind = type(optimizer)
    wrapped = type(kind.__name__, (_Distributed, kind), {})
    result = wrapped.__new__(wrapped)
    result.__dict__.update(optimizer.__dict__)  # the same groups and state, not a copy
    result._ringmaster_init(options, buckets, parameters, int(backward_passes_per_step),
                            ends_step, sampler)
    return result


def _prefix(number_of_set):
    number = next(_numbers.setdefault(number_of_set, itertools.count()))
    return "ringmaster.gradients.%s%d" % ("set%d." % number_of_set if number_of_set else "", number)
