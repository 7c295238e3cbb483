"""Handles of asynchronous operations: integers, as Horovod's are."""

import itertools
import weakref

from ringmaster import _core

_numbers = itertools.count(1)
_pending = weakref.WeakValueDictionary()  # by number: what a Handle stands for, while it lives
_taken = {}  # of these: those that somebody has taken the plain number of, until it is synchronized
_core.on_shutdown(_taken.clear)


class Handle(int):
    """An asynchronous operation, for poll() and synchronize(). Calling it is the same as
    synchronize().

    It can be a key, be compared and be given as plain integer. When nobody holds it any more nobody
    can ask for the result; the operation goes on. Of int(handle) the result is kept until it is
    synchronized, or until shutdown().
    """

    def __new__(cls, pending):
        number = next(_numbers)
        self = super().__new__(cls, number)
        self._keeps = _pending[number] = pending
        return self

    def __int__(self):
        number = super().__int__()
        _taken[number] = self._keeps
        return number

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
    found = _find(handle)
    try:
        return found.wait()
    finally:
        if isinstance(handle, int) and found.done():  # else interrupted
            _taken.pop(handle, None)
