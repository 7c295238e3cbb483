"""DistributedOptimizer: gradients are reduced while backward runs, and a step has one set of
samples.

Gradients travel in buckets (last layers first). Behind its gradients each bucket carries the rank's
*contribution* (see sampler.py; without a sampler a single 1): the sum says which ranks' gradients
are in the result, and divides it. If a death falls between two buckets of a step, one may have the
dead worker's part and the other not: the sums then differ, all survivors see the same, and all
reduce the step's buckets again from the inputs, which are kept. So the gradient of a step is always
exactly the mean over one set of samples, and that set is what the sampler counts as done.
"""

import contextlib
import itertools
import warnings

import torch

from ringmaster import _core
from ringmaster.elastic import Steps
from ringmaster.torch.compression import Compression
from ringmaster.torch.operations import Average, Sum, start_allreduce, synchronize

# Large enough that a bandwidth-bound allreduce pays, small enough that some of it hides behind
# backward. A model below it is one bucket.
DEFAULT_BUCKET_BYTES = 16 << 20

_numbers = itertools.count()  # of optimizers: the same on all ranks, which run the same script


class Bucket:
    """Gradients that travel together: parameters of one type, and room for the contribution."""

    def __init__(self, index, parameters):
        self.name = ("ringmaster.gradients.%s" % index).encode()
        self.parameters = parameters
        self.pending = set(parameters)
        self.handle = None
        self._elements = sum(parameter.numel() for parameter in parameters)
        self._input = self._output = None

    def fill(self, weight, contribution, compression):
        """Packs gradients * weight and the contribution into what is sent."""
        dtype = self.parameters[0].dtype
        packed = torch.empty(self._elements + len(contribution), dtype=dtype)
        at = 0
        for parameter in self.parameters:
            part = packed[at:at + parameter.numel()]
            if weight == 0.0 or parameter.grad is None:
                part.zero_()  # not multiplied: the gradient of an empty batch is not a number
            else:
                torch.mul(parameter.grad.detach().reshape(-1), weight, out=part)
            at += parameter.numel()
        packed[at:] = torch.tensor(contribution, dtype=dtype)
        self._input, self._context = compression.compress(packed)

    def send(self):
        self._output = torch.empty_like(self._input)
        self.handle = start_allreduce(self._input, self._output, self.name, Sum)

    def receive(self, compression):
        """Waits; returns the summed contribution as a list."""
        handle, self.handle = self.handle, None
        self._result = compression.decompress(synchronize(handle), self._context)
        return self._result[self._elements:].tolist()

    def scatter(self, divisor):
        """Puts the result into the gradients."""
        at = 0
        for parameter in self.parameters:
            part = self._result[at:at + parameter.numel()].view_as(parameter)
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter.data)
            parameter.grad.detach().copy_(part if divisor == 1.0 else part / divisor)
            at += parameter.numel()
        self.reset()

    def reset(self):
        self.pending = set(self.parameters)
        self._input = self._output = self._result = None


class _Distributed:
    """The methods that DistributedOptimizer adds to the class of the optimizer it was given."""

    def _ringmaster_init(self, sampler, compression, op, backward_passes, end_step, bucket_bytes):
        self._compression = compression
        self._op = op
        self._backward_passes = backward_passes
        self._ends_step = end_step
        self._sampler = None
        self._synchronized = False
        self._should_synchronize = True
        self._void = False
        self._contribution = None
        self._launched = 0
        parameters = [p for group in self.param_groups for p in group["params"] if p.requires_grad]
        self._buckets = _make_buckets(parameters, bucket_bytes)
        self._delay = {parameter: backward_passes for parameter in parameters}
        self._accumulators = []  # hooks die with them
        for bucket in self._buckets:
            for parameter in bucket.parameters:
                self._hook(parameter, bucket)
        self._register_state()
        if sampler is not None:
            self.adopt(None, sampler)

    # ---- State for joiners

    def _register_state(self):
        """A plain script's joiners get at least parameters and optimizer; a TorchState takes over.
        """
        groups = self.param_groups

        def save():
            return ([p.data for group in groups for p in group["params"]], self.state_dict())

        def load(saved):
            for parameter, data in zip((p for g in groups for p in g["params"]), saved[0]):
                parameter.data.copy_(data)
            self.load_state_dict(saved[1])

        self._state_name = _free_name("optimizer.%d")
        _core.register_state(self._state_name, save, load)

    def adopt(self, state, sampler):
        """A state that holds this optimizer gives its copy to joiners; `sampler` learns what is
        done.
        """
        if state is not None:
            _core.unregister_state(self._state_name)
        if sampler is not None and self._sampler is None:
            self._sampler = sampler
            sampler.batches_per_step = self._backward_passes

    # ---- While backward runs

    def _hook(self, parameter, bucket):
        if hasattr(parameter, "register_post_accumulate_grad_hook"):
            parameter.register_post_accumulate_grad_hook(
                lambda p: self._gradient_ready(p, bucket))
            return
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *_: self._gradient_ready(parameter, bucket))
        self._accumulators.append(accumulator)

    def _gradient_ready(self, parameter, bucket):
        if bucket.handle is not None or self._delay[parameter] <= 0:
            raise AssertionError(
                "a gradient came again before optimizer.step() or synchronize(); for several "
                "backward passes in a step say so with backward_passes_per_step")
        self._delay[parameter] -= 1
        if self._delay[parameter] == 0:
            bucket.pending.discard(parameter)
            self._launch_ready()

    def _launch_ready(self):
        """In the buckets' order, so that what is sent first is the same everywhere."""
        while self._launched < len(self._buckets) and not self._buckets[self._launched].pending:
            self._launch(self._buckets[self._launched])
            self._launched += 1

    def _launch(self, bucket):
        if self._contribution is None:
            self._begin_reduction()
        weight, contribution = self._contribution
        bucket.fill(weight, contribution, self._compression)
        bucket.send()

    def _begin_reduction(self):
        late = _core.is_joining()
        if late:  # these gradients are of parameters from before the state came: they don't count
            _core.enter()
        handed_out = self._sampler.contribution() if self._sampler else []
        if handed_out:
            weight = sum(handed_out) / len(handed_out) if self._op == Average else 1.0
            self._contribution = (0.0 if not any(handed_out) else weight, handed_out)
        else:
            self._contribution = (1.0, [1.0])
        if late:
            self._contribution = (0.0, [0.0] * len(self._contribution[1]))

    # ---- The step

    def synchronize(self):
        """Waits until the gradients of all buckets are reduced."""
        for bucket in self._buckets:
            bucket.pending.clear()  # a parameter without a gradient counts as zero
        self._launch_ready()
        if not self._buckets:
            return
        sums = self._receive_all()
        while any(other != sums[0] for other in sums):
            # A death fell between two buckets. All survivors see the same sums, so all come here.
            for bucket in self._buckets:
                bucket.send()
            sums = self._receive_all()
        divisor = self._settle(sums[0])
        for bucket in self._buckets:
            bucket.scatter(divisor)
        self._forget_gradients()
        self._synchronized = True

    def _receive_all(self):
        try:
            return [bucket.receive(self._compression) for bucket in self._buckets]
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
        if self._sampler is not None:
            self._sampler.give_back()

    def _forget_gradients(self):
        self._launched = 0
        self._contribution = None
        self._delay = {parameter: self._backward_passes for parameter in self._delay}

    def _settle(self, sums):
        """What to divide by. Tells the sampler which samples are in."""
        total, self._void = sum(sums), False
        if self._sampler is not None and self._sampler.contribution():
            self._void = self._sampler.settle(sums).void
            total = total / len(sums)
        if total == 0.0 or self._void:
            self._void = True  # the result has no rank's gradient: no update
            return 1.0
        return 1.0 if self._op == Sum else total

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
        loss = closure() if closure is not None else None
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called after optimizer.synchronize() reduces "
                              "again; use optimizer.skip_synchronize() around step()", stacklevel=2)
            self.synchronize()
        self._synchronized = False
        if not self._void:
            super().step()
        if self._ends_step:
            Steps.optimizer_stepped()
        return loss

    def zero_grad(self, *args, **kwargs):
        if any(missing == 0 for missing in self._delay.values()):
            raise AssertionError("optimizer.zero_grad() was called after loss.backward() but "
                                 "before optimizer.step() or optimizer.synchronize()")
        _core.enter()  # a joiner of a plain script gets its parameters here, before it uses them
        return super().zero_grad(*args, **kwargs)


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=Average, sampler=None, end_step=True,
                         bucket_bytes=DEFAULT_BUCKET_BYTES):
    """Wraps an optimizer: its step() applies the mean gradient over all ranks.

    `sampler`: an ElasticSampler whose batches() feed the loss; the mean is then over samples, not
    over ranks. end_step=False leaves the end of a step to state.commit() or end_step().
    """
    if op not in (Average, Sum):
        raise ValueError("op: is %r, must be Average or Sum" % (op,))
    if int(backward_passes_per_step) < 1:
        raise ValueError("backward_passes_per_step: is %r, must be 1 or more"
                         % (backward_passes_per_step,))
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("optimizer: LBFGS evaluates its closure many times in a step, which "
                         "can't be reduced once")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    _check_names(named_parameters, parameters)
    kind = type(optimizer)
    wrapped = type(kind.__name__, (_Distributed, kind), {})
    result = wrapped.__new__(wrapped)
    result.__dict__.update(optimizer.__dict__)  # the same groups and state, not a copy
    result._ringmaster_init(sampler, compression, op, int(backward_passes_per_step), end_step,
                            bucket_bytes)
    return result


def _check_names(named_parameters, parameters):
    if named_parameters is None:
        return
    named = list(named_parameters)
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError("named_parameters: %s occur(s) more than once" % ", ".join(twice))
    known = {id(parameter) for _, parameter in named}
    unnamed = sum(1 for parameter in parameters if id(parameter) not in known)
    if unnamed:
        raise ValueError("named_parameters: %d parameter(s) of the optimizer have no name"
                         % unnamed)


def _make_buckets(parameters, bucket_bytes):
    groups, sizes = {}, {}
    buckets = []
    optimizer = next(_numbers)
    for parameter in reversed(parameters):  # gradients of the last layers come first
        if parameter.device.type != "cpu":
            raise ValueError("parameters: one is on %s, must be on the CPU (there is no GPU data "
                             "path yet)" % parameter.device)
        key = parameter.dtype
        bytes_ = parameter.numel() * parameter.element_size()
        if key not in groups or sizes[key] + bytes_ > bucket_bytes:
            groups[key], sizes[key] = [], 0
            buckets.append(groups[key])
        groups[key].append(parameter)
        sizes[key] += bytes_
    return [Bucket("%d.%d" % (optimizer, index), parameters)
            for index, parameters in enumerate(buckets)]


def _free_name(pattern):
    number = 0
    while pattern % number in _core.registered_states():
        number += 1
    return pattern % number
