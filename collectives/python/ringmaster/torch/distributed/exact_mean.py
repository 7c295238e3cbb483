"""exact_mean: DistributedDataParallel's gradients as the mean over what took part in the step.

By itself DistributedDataParallel divides by the size that the world had when the step began. After
a death within the step the survivors' mean is then too small, a death between two of its buckets
gives them different participants, and an ElasticSampler can't know which samples are in. Here each
bucket carries the ranks' contributions, as those of DistributedOptimizer do (see optimizer.py).
"""

import contextlib
import itertools
import weakref

import torch

from ringmaster import _core, presence
from ringmaster.errors import WorkerDroppedError
from ringmaster.process_sets import global_process_set
from ringmaster.reductions import Sum
from ringmaster.torch.handles import synchronize
from ringmaster.torch.pass_weights import PassWeights
from ringmaster.torch.starting import start_allreduce

_means = weakref.WeakSet()
# What a model was wrapped of and feeds on outlives its wrapping, which a training function that is
# entered again makes anew.
_modules = weakref.WeakSet()
_samplers = weakref.WeakSet()
_numbers = itertools.count()  # of models, in the order in which all ranks make them


def exact_mean(model, sampler=None, backward_passes_per_step=1):
    """Has a DistributedDataParallel's gradients be the exact mean over the samples of an
    ElasticSampler (or, without one, over the ranks) that are in the step's reduction. Returns the
    model.

    The loss is a mean over the rank's own share. `backward_passes_per_step`: batches of the sampler
    that a step has, all but the last of them under model.no_sync(). A step that doesn't count (two
    ranks took one sample as the world changed) has gradients of zero, and its samples come again.
    """
    mean = _Mean(sampler)
    if sampler is not None:
        sampler.batches_per_step = int(backward_passes_per_step)
        _samplers.add(sampler)
        if sampler.batches_per_step > 1:
            mean.weigh_passes(model.module.parameters())
    model.register_comm_hook(mean, _reduce)
    _means.add(mean)
    _modules.add(model.module)
    return model


def begin_again():
    """The training function is entered again: what was begun before is over. Gradients that
    no_sync() has added up are void, and their samples come again: a joiner has neither.
    """
    global _numbers
    _numbers = itertools.count()
    for mean in list(_means):
        mean.give_up()
    for sampler in list(_samplers):
        sampler.give_back()
    for module in list(_modules):
        module.zero_grad(set_to_none=True)


def _reduce(state, bucket):
    return state.add(bucket)


class _Part:
    """A bucket: what was sent, and the future that gets its mean."""

    def __init__(self, name, packed, elements):
        self.name = name
        self.packed = packed
        self.elements = elements
        self.future = torch.futures.Future()

    def send(self):
        self.result = torch.empty_like(self.packed)
        self.handle = start_allreduce(self.packed, self.result, self.name, Sum, global_process_set)

    def receive(self):
        handle, self.handle = self.handle, None
        synchronize(handle)
        return self.result[self.elements:].tolist()

    def fulfil(self, divisor):
        mean = self.result[:self.elements]
        self.future.set_result(mean.div_(divisor) if divisor else torch.zeros_like(mean))


class _Mean:
    """Of one model: the parts of the step that are on their way."""

    def __init__(self, sampler):
        self._sampler = sampler
        self._number = next(_numbers)
        self._parts = []
        self._pass_weights = PassWeights()

    def weigh_passes(self, parameters):
        for parameter in parameters:
            self._pass_weights.watch(parameter, self._sampler)

    def add(self, bucket):
        """Starts a bucket's reduction; with the last one all are finished."""
        gradients = bucket.buffer()
        weight, contribution = self._contribution()
        packed = torch.empty(gradients.numel() + len(contribution), dtype=gradients.dtype,
                             device=gradients.device)
        if weight == 0.0:
            packed.zero_()  # not multiplied: the gradient of an empty batch is not a number
        else:
            torch.mul(gradients, weight, out=packed[:gradients.numel()])
        packed[gradients.numel():] = torch.tensor(contribution, dtype=gradients.dtype)
        name = b"ringmaster.ddp.%d.%d" % (self._number, bucket.index())
        part = _Part(name, packed, gradients.numel())
        self._parts.append(part)
        try:
            part.send()
            if bucket.is_last():
                self._finish()
        except WorkerDroppedError:
            # Some versions of torch lose the type of an error from here. The end of the step raises
            # it again, and until then nothing of this rank counts.
            self._drop()
        except BaseException:
            self.give_up()
            raise
        return part.future

    def _contribution(self):
        flags = self._sampler.contribution() if self._sampler is not None else []
        self._weighs_samples = bool(flags)
        if not flags:
            return 1.0, presence.flags(_core.step_view().rank)
        return self._pass_weights.of_step(self._sampler.parts()), flags

    def _finish(self):
        sums = [part.receive() for part in self._parts]
        while any(other != sums[0] for other in sums):
            # A death fell between two buckets. All survivors see the same, so all send again.
            for part in self._parts:
                part.send()
            sums = [part.receive() for part in self._parts]
        divisor = self._settle(sums[0])
        for part in self._parts:
            part.fulfil(divisor)
        self._parts = []
        self._pass_weights.begin_step()

    def _settle(self, sums):
        """What to divide by; 0: the step doesn't count."""
        if self._weighs_samples:
            return 0.0 if self._sampler.settle(sums).void else sum(sums) / len(sums)
        return presence.count(sums)

    def _drop(self):
        parts = list(self._parts)
        self.give_up()
        for part in parts:
            part.result = torch.zeros(part.elements, dtype=part.packed.dtype,
                                      device=part.packed.device)
            part.fulfil(1.0)

    def give_up(self):
        for part in self._parts:
            if getattr(part, "handle", None) is not None:
                with contextlib.suppress(Exception):
                    synchronize(part.handle)
        self._parts = []
        self._pass_weights.begin_step()
        if self._sampler is not None:
            self._sampler.give_back()
