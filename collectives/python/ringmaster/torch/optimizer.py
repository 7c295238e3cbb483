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
import math
import time
import warnings
import weakref

import torch

from ringmaster import _core, presence
from ringmaster.elastic import Steps, on_begin_sums, on_dropped
from ringmaster.errors import MISMATCH, HorovodInternalError
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Adasum, Average, Sum
from ringmaster.torch import adasum_optimizer, optimizer_options
from ringmaster.torch.buckets import DenseBucket, SparseBucket, make_buckets
from ringmaster.torch.compression import Compression
from ringmaster.torch.handles import synchronize
from ringmaster.torch.optimizer_numbers import number_of
from ringmaster.torch.original import KeepsOriginal, take_over
from ringmaster.torch.pass_weights import PassWeights
from ringmaster.torch.starting import start_allgathers
from ringmaster.torch.state_of_optimizer import GivesState

__all__ = ["DistributedOptimizer"]

# Large enough that a bandwidth-bound allreduce pays, small enough that some of it hides behind
# backward. A model below it is one bucket.
DEFAULT_BUCKET_BYTES = 16 << 20

# After an error that all ranks have seen, how long operations of the same step are waited for.
OTHERS_COME_SECONDS = 60.0

_hooking = weakref.WeakSet()  # optimizers whose parameters tell them of their gradients


@on_begin_sums
def _all_begin_anew():
    for optimizer in list(_hooking):
        optimizer.begin_anew()


class _Distributed(GivesState, KeepsOriginal):
    """The methods that DistributedOptimizer adds to the class of the optimizer it was given."""

    def _ringmaster_init(self, options, takes_part, buckets, parameters, backward_passes, end_step,
                         sampler):
        self._options = options
        self._backward_passes = backward_passes
        self._ender = Steps.new_ender() if end_step else None
        self._sampler, self._bound_by = None, None  # the latter: a weak reference to a state
        self._pass_weights = PassWeights(options.op == Average)
        self._synchronized = False
        self._should_synchronize = True
        self._void = False
        self._has_warned = False  # that changes of gradients have no effect
        self._answering = 0  # ranks, when they last told each other what they know
        self._stuck = ""  # why no step can be made any more
        self._contribution = None
        self._launched = 0
        self._buckets = buckets
        self._name_of_lists = options.prefix + ".sparse"  # in which ranks tell what they know
        self._bucket_of = {p: bucket for bucket in buckets for p in bucket.parameters}
        self._delay = {parameter: backward_passes for parameter in parameters}
        self._takes_part = takes_part
        self._hooks = {}  # by parameter: the hook, and what it dies with
        _hooking.add(self)
        self._hook_all()
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
        if sampler is None:
            return
        if state is not None and (self._sampler is None or sampler is self._sampler):
            self._bound_by = weakref.ref(state)
        if sampler is self._sampler:
            return
        if self._sampler is not None:
            if state is None or self._bound_by is None or self._bound_by() is not state:
                return  # another state's is no reason to leave the first one
            self._sampler.let_go(self._step_with_the_rest)
            for parameter in self._hooks:
                self._pass_weights.let_go(parameter)
        self._sampler = sampler
        sampler.batches_per_step = self._backward_passes
        sampler.on_epoch_end(self._step_with_the_rest)
        self._weigh_passes()

    def _step_with_the_rest(self, newest):
        """The epoch has ended before backward_passes_per_step passes were made.

        All ranks come here, also one whose shares were empty and that has made no pass. Of several
        optimizers those that take turns do, beside the newest one. One whose parameters another
        optimizer has taken over makes none.
        """
        replaced = self._bucket_of and not self._hooks
        if not newest and (replaced or self._ender is None or not self._ender.takes_turns):
            return
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
        self._weigh_passes()

    def _weigh_passes(self):
        """One pass is weighed as it is sent."""
        if self._sampler is not None and self._backward_passes > 1:
            for parameter in self._hooks:
                self._pass_weights.watch(parameter, self._sampler)

    def _hook_all(self):
        self._hook_missing()
        self._weigh_passes()

    def _hook_missing(self):
        if len(self._hooks) == len(self._bucket_of):
            return
        for parameter in self._bucket_of:
            if parameter not in self._hooks and parameter.requires_grad:
                self._hook(parameter)

    def _hook(self, parameter):
        for other in list(_hooking):
            other.let_go(parameter)
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            hook = parameter.register_post_accumulate_grad_hook(
                _weakly(self._gradient_ready, parameter))
            self._hooks[parameter] = hook, None
            return
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        hook = accumulator.register_hook(_weakly(self._gradient_ready, parameter))
        self._hooks[parameter] = hook, accumulator

    def let_go(self, parameter):
        """Another optimizer of the same parameter is told of its gradients, until this one's
        zero_grad(). Where the script steps this one without that, they are sent then.
        """
        self._pass_weights.let_go(parameter)
        hook, _ = self._hooks.pop(parameter, (None, None))
        if hook is not None:
            hook.remove()

    def _take_in_late_parameters(self):
        """Those that were frozen, or not there, when the optimizer was made."""
        if not self._takes_part:
            return
        for number, parameter in enumerate(optimizer_options.parameters_of(self)):
            if parameter.requires_grad and parameter not in self._bucket_of:
                self._take_in(parameter, number)

    def _take_in(self, parameter, number):
        """In a bucket of its own: a joiner may find several at once that came one by one."""
        name = "%s.late.%d" % (self._options.prefix, number)
        bucket = DenseBucket(name, [parameter], self._options.process_set)
        self._buckets.append(bucket)
        self._bucket_of[parameter] = bucket
        self._delay[parameter] = self._backward_passes
        self._hook(parameter)
        self._weigh_passes()
        if self._stays_sparse(parameter):
            self._split_off(parameter, bucket, parameter.grad.sparse_dim())

    def _stays_sparse(self, parameter):
        return parameter.grad is not None and parameter.grad.is_sparse and \
            not self._options.sparse_as_dense

    def _gradient_ready(self, parameter):
        bucket = self._bucket_of[parameter]
        if bucket.handle is not None or self._delay[parameter] <= 0:
            raise AssertionError(
                "a gradient came again before optimizer.step() or synchronize(); for several "
                "backward passes in a step say so with backward_passes_per_step")
        if self._stays_sparse(parameter) and not bucket.is_sparse:
            bucket = self._split_off(parameter, bucket, parameter.grad.sparse_dim())
        self._delay[parameter] -= 1
        if self._delay[parameter] == 0:
            bucket.pending.discard(parameter)
            self._launch_ready()

    def _split_off(self, parameter, bucket, sparse_dim):
        """Only its first gradient says that a parameter (an embedding's) has sparse ones. The bucket
        stays, even without parameters: ranks that have not seen that gradient send it as it was, and
        all of them learn by the mismatch that there is something to learn.
        """
        everyone = optimizer_options.parameters_of(self)
        number = [other is parameter for other in everyone].index(True)
        name = "%s.sparse.%d" % (self._options.prefix, number)
        sparse = SparseBucket(name, number, parameter, sparse_dim, self._options.process_set)
        bucket.drop(parameter)
        self._buckets.insert(self._buckets.index(bucket) + 1, sparse)
        self._bucket_of[parameter] = sparse
        return sparse

    def _learn_what_is_sparse(self):
        """After a mismatch, which all ranks have seen. True: what was sent has to be sent again,
        because some have died since, or they knew of different parameters that their gradients are
        sparse (one had an embedding's first gradient without the others, or came later), and all
        know of all of them now.
        """
        known = [[bucket.number, bucket.sparse_dim] for bucket in self._buckets if bucket.is_sparse]
        rows = []
        everyones = synchronize(start_allgathers(
            [torch.tensor([[-1, len(known)]] + sorted(known))], [self._name_of_lists.encode()],
            self._options.process_set, [rows]).single())
        lists = [part.tolist() for part in everyones.split(rows) if len(part)]
        fewer, self._answering = len(lists) < self._answering, len(lists)
        if all(other == lists[0] for other in lists):
            return fewer  # the one that differed may have died
        everyone = optimizer_options.parameters_of(self)
        for number, sparse_dim in sorted({tuple(one) for part in lists for one in part[1:]}):
            bucket = self._bucket_of[everyone[number]]
            if not bucket.is_sparse:
                # The ranks that knew it wait for this one.
                self._launch(self._split_off(everyone[number], bucket, sparse_dim))
        for bucket in self._buckets:
            if bucket.handle is not None:
                with _suppressed_mismatch():
                    bucket.receive(self._options.compression)
        return True

    def _launch_ready(self):
        """In the buckets' order, so that what is sent first is the same everywhere."""
        while self._launched < len(self._buckets) and not self._buckets[self._launched].pending:
            self._launch(self._buckets[self._launched])
            self._launched += 1

    def _launch(self, bucket):
        if self._stuck:
            raise HorovodInternalError(self._stuck)
        if self._contribution is None:
            self._begin_reduction()
        weight, contribution = self._contribution
        bucket.fill(weight / self._predivide(bucket), contribution, self._options.compression)
        bucket.send()

    def _predivide(self, bucket):
        """What gradients are divided by before they are added up: in float16, which their sum might
        be too large for, by the number of ranks. It is the same on all, whoever takes part.
        """
        options = self._options
        if options.predivide != 1.0 or options.op != Average or self._weighs_samples or \
                not bucket.travels_as_half(options.compression):
            return options.predivide
        return float(_size_at_first(options.process_set))

    def _begin_reduction(self):
        late = _core.is_joining()
        if late:  # these gradients are of parameters from before the state came: they don't count
            _core.enter()
        handed_out = self._sampler.contribution() if self._sampler is not None else []
        self._weighs_samples = bool(handed_out)
        if handed_out:
            self._contribution = (self._pass_weights.of_step(self._sampler.parts()), handed_out)
        else:
            self._contribution = (1.0, presence.flags(_core.step_view().rank))
        if late:
            self._contribution = (0.0, [0.0] * len(self._contribution[1]))

    # ---- The step

    def synchronize(self):
        """Waits until the gradients of all buckets are reduced.

        HorovodInternalError: what the ranks gave does not fit together; the next step begins clean,
        unless the error says that there can be none.
        """
        self._take_in_late_parameters()
        for bucket in self._buckets:
            bucket.pending.clear()  # a parameter without a gradient counts as zero
        self._launch_ready()
        if not self._buckets:
            self._synchronized = True
            return
        self._answering = _size_at_first(self._options.process_set)
        sums = self._receive_all()
        while not sums or any(other != sums[0] for other in sums):
            # A death fell between two buckets. All survivors see the same sums, so all come here.
            for bucket in self._buckets:
                self._launch(bucket)
            sums = self._receive_all()
        divisor = self._settle(sums[0])
        changed = self._changed()
        for bucket in self._buckets:
            bucket.scatter(divisor / self._predivide(bucket), but=changed)
        self._forget_gradients()
        self._synchronized = True

    def _changed(self):
        """Parameters whose gradients the script has changed since they were sent (clipped, say),
        if they stay as the script has made them: with one rank the result is what they were.
        """
        changed = {parameter for bucket in self._buckets for parameter in bucket.changed()}
        if not changed or self._void:
            return frozenset()
        if _size_at_first(self._options.process_set) == 1:
            return changed
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "gradients were changed between loss.backward() and optimizer.step(); that has no "
                "effect, because they are replaced by what all ranks' were. To clip or unscale "
                "them call optimizer.synchronize() first, and then step with "
                "`with optimizer.skip_synchronize(): optimizer.step()`", stacklevel=4)
        return frozenset()

    def _receive_all(self):
        """The summed contribution of each bucket; none: all ranks have to send theirs again."""
        try:
            try:
                return [bucket.receive(self._options.compression) for bucket in self._buckets]
            except HorovodInternalError as error:
                if error.code == MISMATCH and self._learn_what_is_sparse():
                    return []
                raise
        except Exception as error:
            self._give_up(OTHERS_COME_SECONDS)
            if self._stuck:
                raise HorovodInternalError("%s. Besides, %s" % (error, self._stuck)) from error
            raise

    def _give_up(self, seconds=math.inf):
        """After an error: no handle may stay, the samples go back, the next step begins clean."""
        self._forget_reductions(seconds)
        if self._sampler is not None:
            self._sampler.give_back()

    def _forget_reductions(self, seconds=math.inf):
        """`seconds`: how long operations are waited for that other ranks may never ask for."""
        deadline = time.monotonic() + seconds
        for bucket in self._buckets:
            if bucket.handle is not None:
                self._wait_for_others(bucket, deadline)
                bucket.handle = None
            bucket.reset()
        self._forget_gradients()
        self._synchronized = False

    def _wait_for_others(self, bucket, deadline):
        """An operation that other ranks don't ask for would meet one of a later step."""
        while deadline < math.inf and not bucket.handle.done() and time.monotonic() < deadline:
            time.sleep(0.001)
        if deadline == math.inf or bucket.handle.done():
            with contextlib.suppress(Exception):
                synchronize(bucket.handle)
        elif not self._stuck:
            self._stuck = (
                "other ranks have not sent %s, and this rank has: all ranks must have the same "
                "parameters. This optimizer can make no further step" % bucket.name.decode())

    def load_state_dict(self, state_dict):
        """As Horovod's, it also gives up what backward passes have begun: a script that goes back
        to an earlier state makes no step of it.
        """
        super().load_state_dict(state_dict)
        # A joiner loads the others' state, perhaps within its first synchronize().
        if not _core.is_initialized() or _core.is_joining() or not self._is_under_way():
            return
        self._forget_reductions()
        if self._sampler is not None:
            self._sampler.give_back()

    def _is_under_way(self):
        """Gradients have come that no step has used."""
        return self._contribution is not None or \
            any(missing != self._backward_passes for missing in self._delay.values())

    def begin_anew(self):
        """What a part of a step has added up is void: a joiner has added up nothing, and the batches
        come again or not, as the training function will have it.
        """
        if self._is_under_way():
            self._give_up()
            super().zero_grad()

    def _forget_gradients(self):
        self._launched = 0
        self._contribution = None
        self._delay = {parameter: self._backward_passes for parameter in self._delay}
        self._pass_weights.begin_step()

    def _settle(self, sums):
        """What to divide by. Tells the sampler which samples are in."""
        self._void = False
        if self._weighs_samples:
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
        self._tell_original_of_step()
        if self._ender is not None:
            Steps.optimizer_stepped(self._ender)
        return loss

    def zero_grad(self, *args, **kwargs):
        complete = any(missing == 0 for missing in self._delay.values())
        if complete and _core.size() == 1:
            self._forget_reductions()  # a cell of a notebook was interrupted, say
        elif complete:
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but "
                                 "before optimizer.step() or optimizer.synchronize()")
        self._give_state()
        self._hook_all()
        _core.enter()  # a joiner of a plain script gets its parameters here, before it uses them
        return super().zero_grad(*args, **kwargs)


# The optimizer's own step() calls the hooks that scripts have registered. Without this mark PyTorch
# would make this one call them, too, when a state is loaded.
_Distributed.step.hooked = True


@contextlib.contextmanager
def _suppressed_mismatch():
    try:
        yield
    except HorovodInternalError as error:
        if error.code != MISMATCH:
            raise


def _weakly(method, parameter):
    """A hook of the parameter, which lives no longer than the optimizer: what is in a parameter's
    hooks is not freed by the garbage collector.
    """
    reference, known = weakref.WeakMethod(method), weakref.ref(parameter)

    def tell(*_):
        gradient_ready, of = reference(), known()
        if gradient_ready is not None and of is not None:
            gradient_ready(of)

    return tell


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
        sparse and travel by allgather.
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
    prefix = _prefix(optimizer_options.parameters_of(optimizer), number)
    ends_step = not number if end_step is None else end_step
    takes_part = not number or process_set.included()
    if op == Adasum:
        return adasum_optimizer.wrap(optimizer, prefix, takes_part, int(backward_passes_per_step),
                                     ends_step, process_set)
    lists = optimizer_options.lists_of_groups(num_groups, groups, parameters)
    options = _Options(prefix, compression, op, float(gradient_predivide_factor), sparse_as_dense,
                       process_set)
    buckets = []
    if takes_part:
        buckets = make_buckets(parameters, bucket_bytes, lists, options.prefix, process_set)
    result = take_over(_Distributed, optimizer)
    result._ringmaster_init(options, takes_part, buckets, parameters,
                            int(backward_passes_per_step), ends_step, sampler)
    return result


def _size_at_first(process_set):
    """How many ranks it had when the step began; of a process set, when it was added. The same on
    all ranks.
    """
    return process_set.size_when_added() or _core.step_view().size


def _prefix(parameters, number_of_set):
    number = number_of(parameters, number_of_set)
    return "ringmaster.gradients.%s%d" % ("set%d." % number_of_set if number_of_set else "", number)
