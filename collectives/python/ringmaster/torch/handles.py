"""Handles of asynchronous operations: integers, as Horovod's are."""

import itertools
import weakref

_numbers = itertools.count(1)
_pending = weakref.WeakValueDictionary()  # by number: what a Handle stands for, while it lives


class Handle(int):
    """An asynchronous operation, for poll() and synchronize(). Calling it is the same as
    synchronize().

    It can be a key, be compared and be given as plain integer. When nobody holds it any more nobody
    can ask for the result; the operation goes on.
    """

    def __new__(cls, pending):
        number = next(_numbers)
        self = super().__new__(cls, number)
        self._keeps = _pending[number] = pending
        return self

    def __call__(self):
        return synchronize(self)


def _find(handle):
    # The optimizer waits for what it has started without a Handle around it.
    if hasattr(handle, "wait"):
        return handle
    found = _pending.get(handle) if isinstance(handle, int) else None
    if found is None:
        raise ValueError("handle: is %r, must be what an asynchronous operation has returned and "
                         "somebody still holds" % (handle,))
    return found


def poll(handle):
    """True when synchronize(handle) would not block."""
    return _find(handle).done()


def synchronize(handle):
    """Waits for an asynchronous operation and returns its result.

    Raises HorovodInternalError on every rank, with the same words, if the operation failed;
    ValueError if the handle is none or has been synchronized already. After an interrupt (Ctrl-C)
    it can be called again.
    """
    return _find(handle).wait()
