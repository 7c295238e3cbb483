"""PassWeights: what each backward pass of a step counts, where a rank's shares of the batches of an
ElasticSampler are of different sizes.

A rank's gradient is that of a mean over its share, so it counts as much as the share is of the
global batch. What the passes of a step have added up is weighed once, as the first of them is. So
the gradient of a later pass whose share is another part of its batch, as at an epoch's end, is
scaled before it is added; that of an empty share, which may be no number, is made zero.
"""

import weakref

import torch

_all = weakref.WeakSet()


class PassWeights:
    """Of one optimizer or model. `mean`: False where gradients are summed over the ranks as they
    are, and only those of empty shares don't count.
    """

    def __init__(self, mean=True):
        self._mean = mean
        self._hooks = {}  # by parameter
        self.begin_step()
        _all.add(self)

    def begin_step(self):
        """Nothing has been added up."""
        self._passes = {}  # by parameter: those that have reached it
        self._handed_out = 0  # shares, when the last gradient came
        self._first = 0  # of the shares: gradients that come now are of it, or of a later one

    def watch(self, parameter, sampler):
        """Weighs its gradients, and no other PassWeights does any more."""
        if parameter in self._hooks or not parameter.requires_grad:
            return
        for other in list(_all):
            other.let_go(parameter)
        self._hooks[parameter] = parameter.register_hook(
            lambda gradient: self._weigh(parameter, gradient, sampler.parts()))

    def let_go(self, parameter):
        hook = self._hooks.pop(parameter, None)
        if hook is not None:
            hook.remove()

    def of_step(self, parts):
        """The weight of what the passes have added up."""
        weight = next((part for part in parts if part), 0.0)
        return weight if self._mean or not weight else 1.0

    def _weigh(self, parameter, gradient, parts):
        if len(parts) > self._handed_out:
            # What came before was of the shares that there were then. Scripts take a share for each
            # pass, or all of a step's before the first one.
            self._first, self._handed_out = self._handed_out, len(parts)
        number = self._passes.get(parameter, 0)
        self._passes[parameter] = number + 1
        if not parts:
            return None
        part = parts[max(self._first, min(number, len(parts) - 1))]
        if not part:
            return torch.zeros_like(gradient)
        factor = part / self.of_step(parts) if self._mean else 1.0
        return None if factor == 1.0 else gradient * factor
