"""What a DistributedOptimizer gives joiners by itself: parameters and its own state."""

import weakref

from ringmaster import _core, elastic
from ringmaster.torch.devices import to_host
from ringmaster.torch.optimizer_options import parameters_of

# Weak references to optimizers, by the name of what they give. The name of one that is no more
# stays taken: when it goes differs between ranks.
_givers = {}


class GivesState:
    """A part of what joiners get. A TorchState that has the optimizer takes over.

    A shutdown() ends that: a worker that comes into a later round has not made the optimizers of
    the rounds before. One that lives on gives its state again when it is used. What is made in a
    training function that is entered again gives nothing: a joiner makes it only after it has got
    what there is, and the others make theirs anew. One that was kept from an earlier entry is
    refused, unless it stands in a state: a joiner would begin with another momentum. So is one that
    is made in a training function that is entered once: a joiner gets the state before it enters.
    """

    def _register_state(self):
        self._is_in_a_state = False
        self._state_name = None
        self._made_in = elastic.entry() if elastic.makes_anew() else None
        self._made_in_place = elastic.runs_in_place() and _core.has_sidecar()
        if self._made_in is not None or self._made_in_place:
            return
        self._state_name = _free_name("optimizer.%d")
        self._give_state()

    def _give_state(self):
        """Under the name that it had. Nothing happens where it gives it already."""
        self._refuse_if_kept()
        self._refuse_if_made_in_place()
        if self._state_name is None or self._is_in_a_state or self._state_name in _givers:
            return

        reference = weakref.ref(self)

        def save():
            optimizer = reference()
            if optimizer is None:
                return None
            parameters = [p.data for p in parameters_of(optimizer)]
            return to_host([parameters, optimizer.state_dict()])

        def load(saved):
            optimizer = reference()
            if optimizer is None or saved is None:
                return
            for parameter, data in zip(parameters_of(optimizer), saved[0]):
                parameter.data.copy_(data)
            optimizer.load_state_dict(saved[1])

        _givers[self._state_name] = reference
        _core.register_state(self._state_name, save, load, sufficient=False)

    def _refuse_if_kept(self):
        if self._made_in in (None, elastic.entry()) or self._is_in_a_state:
            return
        raise RuntimeError(
            "optimizer: this DistributedOptimizer was made in the training function, which has been "
            "entered again since; allowed is to make it each time that the function is entered, or "
            "before elastic.run and give it to the state (TorchState(optimizer=...)). Else a "
            "worker that joins has no state of it")

    def _refuse_if_made_in_place(self):
        if not self._made_in_place or self._is_in_a_state:
            return
        raise RuntimeError(
            "optimizer: this DistributedOptimizer was made in a training function with "
            "in_place=True, which a worker that joins enters when it has got the state, so it could "
            "not get that of this optimizer; allowed is to make it before elastic.run and to give "
            "it to the state (TorchState(optimizer=...)), or a function without in_place")

    def adopt(self, state, sampler):
        """A state that holds this optimizer gives its copy to joiners."""
        del sampler
        if state is None:
            return
        self._is_in_a_state = True
        giver = _givers.get(self._state_name)
        if giver is not None and giver() is self:
            del _givers[self._state_name]
            _core.unregister_state(self._state_name)


@_core.on_shutdown
def _forget_all():
    for name in _givers:
        _core.unregister_state(name)
    _givers.clear()


def _free_name(pattern):
    number = 0
    while pattern % number in _givers:
        number += 1
    return pattern % number
