"""The numbers by which the ranks find each other's gradients: how many DistributedOptimizers a script
has made before, for each process set.

They have to be the same on all ranks, also on a worker that was started later. So they begin again
after a shutdown(), and where a training function is entered again they go on from where they stood
when it was entered first. An optimizer of the same parameters as an earlier one has its number: a
reset callback that makes one anew does so on survivors only.
"""

import weakref

from ringmaster import _core, elastic

_made = {}  # by process set
_known = {}  # (identity of the first parameter, process set): (weak references to all, number)


def number_of(parameters, number_of_set):
    """Of a new optimizer of these parameters, one or more."""
    key = id(parameters[0]), number_of_set
    before, number = _known.get(key, ((), None))
    if len(before) == len(parameters) and \
            all(reference() is parameter for reference, parameter in zip(before, parameters)):
        # Counted here, too: a joiner counts it as it enters the training function, in which the
        # others make it anew.
        _made[number_of_set] = max(_made.get(number_of_set, 0), number + 1)
        return number
    number = _made.get(number_of_set, 0)
    _made[number_of_set] = number + 1
    # Not kept on the parameters themselves: these are pickled with all that they have.
    references = [weakref.ref(parameters[0], lambda gone: _forget(key, gone))]
    _known[key] = references + [weakref.ref(other) for other in parameters[1:]], number
    return number


def _forget(key, gone):
    if key in _known and _known[key][0][0] is gone:  # else another one lives at that address
        del _known[key]


@_core.on_shutdown
def _begin_again():
    _made.clear()
    _known.clear()


@elastic.on_run
def _mark():
    marked = dict(_made)

    def go_back():
        _made.clear()
        _made.update(marked)

    return go_back
