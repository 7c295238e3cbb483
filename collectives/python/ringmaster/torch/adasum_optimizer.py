"""DistributedOptimizer(op=Adasum): each rank makes its own update, and the updates are combined.

The optimizer takes its step with the rank's own gradients; what that changed is combined by Adasum,
which counts once what the ranks' updates have in common, and applied instead. So the learning rate
needs no scaling with the number of ranks. (As Horovod does it.)
"""

import contextlib

import torch

from ringmaster import _core
from ringmaster.elastic import Steps
from ringmaster.reductions import Adasum
from ringmaster.torch import starting
from ringmaster.torch.optimizer_options import parameters_of
from ringmaster.torch.original import KeepsOriginal, take_over
from ringmaster.torch.state_of_optimizer import GivesState


class AdasumSteps(GivesState, KeepsOriginal):
    """The methods that are added to the class of the optimizer."""

    def _ringmaster_init(self, prefix, takes_part, passes, end_step, process_set):
        self._prefix = prefix
        self._takes_part = takes_part
        self._backward_passes = passes
        self._ender = Steps.new_ender() if end_step else None
        self._process_set = process_set
        self._register_state()

    def set_backward_passes_per_step(self, passes):
        """Gradients add up by themselves until step() is called; the number is kept for scripts."""
        if int(passes) < 1:
            raise ValueError("passes: is %r, must be 1 or more" % (passes,))
        self._backward_passes = int(passes)

    def synchronize(self):
        """Nothing is sent before step()."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        yield

    def zero_grad(self, *args, **kwargs):
        self._give_state()
        _core.enter()  # a joiner of a plain script gets its parameters here, before it uses them
        return super().zero_grad(*args, **kwargs)

    def step(self, closure=None):
        """The optimizer's own step, then all ranks' together; ends the step (docs/python.md).

        HorovodInternalError: the ranks' updates do not fit together; the parameters are as before.
        """
        self._give_state()
        late = _core.is_joining()  # its gradients are of parameters from before the state came
        if late:
            _core.enter()
        # Looked up in each step: parameters may be unfrozen, or added.
        trained = [p for p in parameters_of(self) if p.requires_grad] if self._takes_part else []
        begun = [parameter.detach().clone() for parameter in trained]
        loss = super().step(closure)
        taken = [torch.zeros_like(start) if late else parameter.detach() - start
                 for parameter, start in zip(trained, begun)]
        combined = [torch.zeros_like(start) for start in begun]  # also where it is interrupted
        try:
            combined = self._combine(taken)
        finally:
            with torch.no_grad():
                for parameter, start, update in zip(trained, begun, combined):
                    parameter.copy_(start + update)
        self._tell_original_of_step()
        if self._ender is not None:
            Steps.optimizer_stepped(self._ender)
        return loss

    def _combine(self, updates):
        if not updates:
            return []
        names = [("%s.%d" % (self._prefix, index)).encode() for index in range(len(updates))]
        return starting.start_allreduces(updates, names, Adasum, 1.0, 1.0, self._process_set).wait()


AdasumSteps.step.hooked = True  # as of the other DistributedOptimizer


def wrap(optimizer, prefix, takes_part, passes, end_step, process_set):
    result = take_over(AdasumSteps, optimizer)
    result._ringmaster_init(prefix, takes_part, passes, end_step, process_set)
    return result
