"""The optimizer that a DistributedOptimizer was made of. Both share parameters and state; a
scheduler that was made before goes on with the original, and must find there what it needs.
"""


_NO_COPY = ("a DistributedOptimizer can't be copied or pickled: its gradients are tied to this process. "
            "Keep its state_dict(), and load that into another one")


def take_over(added, optimizer):
    """An object of the optimizer's class with the methods of the class `added` before its own. It
    shares the optimizer's groups and state, not a copy.

    What the optimizer has as attributes of its own under the name of such a method stays behind,
    because it would hide the method: a scheduler of PyTorch's (1.x and 2.x) replaces
    `optimizer.step` by one that counts calls, whose step reduces nothing.
    """
    kind = type(optimizer)
    wrapped = type(kind.__name__, (added, kind), {})
    result = wrapped.__new__(wrapped)
    result.__dict__.update({name: value for name, value in optimizer.__dict__.items()
                            if not hasattr(added, name)})
    result._original = optimizer
    return result


class KeepsOriginal:
    """Methods of what take_over() has made."""

    def load_state_dict(self, state_dict):
        """Also the original's, whose rates a scheduler sets: loading makes new groups."""
        super().load_state_dict(state_dict)
        self._original.state, self._original.param_groups = self.state, self.param_groups

    def __deepcopy__(self, memo):
        raise TypeError(_NO_COPY)

    def __reduce_ex__(self, protocol):
        raise TypeError(_NO_COPY)

    def _tell_original_of_step(self):
        """A scheduler warns unless step() of its optimizer comes before its own. It counts the
        calls up to PyTorch 2.3, and since then notes that there was one.
        """
        if hasattr(self._original, "_step_count"):
            self._original._step_count += 1
        self._original._opt_called = True
