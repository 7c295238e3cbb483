"""What a DistributedOptimizer gives joiners by itself: parameters and its own state."""

from ringmaster import _core
from ringmaster.torch.devices import to_host


class GivesState:
    """A part of what joiners get. A TorchState that has the optimizer takes over."""

    def _register_state(self):
        groups = self.param_groups

        def save():
            parameters = [p.data for group in groups for p in group["params"]]
            return to_host([parameters, self.state_dict()])

        def load(saved):
            for parameter, data in zip((p for g in groups for p in g["params"]), saved[0]):
                parameter.data.copy_(data)
            self.load_state_dict(saved[1])

        self._state_name = _free_name("optimizer.%d")
        _core.register_state(self._state_name, save, load, sufficient=False)

    def adopt(self, state, sampler):
        """A state that holds this optimizer gives its copy to joiners."""
        del sampler
        if state is not None:
            _core.unregister_state(self._state_name)


def _free_name(pattern):
    number = 0
    while pattern % number in _core.registered_states():
        number += 1
    return pattern % number
