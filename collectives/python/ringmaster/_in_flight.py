"""Operations in flight, and what keeps their memory alive.

The library reads the inputs and writes the results of an operation at any time until it is done. So
the buffers belong to the operation, and the operation to this module, until the library has let go
of them: a script may drop its handle, leave by an exception, or be interrupted while it waits.

Any thread.
"""

import atexit
import ctypes
import sys
from ctypes import POINTER, byref, c_size_t, c_uint64, c_void_p

from ringmaster import _core, errors
from ringmaster._library import Request

# rm_wait blocks outside Python: come back this often so that Ctrl-C and signal handlers run.
WAIT_SLICE = 0.5

_in_flight = set()
_abandoned = set()  # of these: those that nobody waits for any more


class Operation:
    """One operation that the library has been given, with the buffers that it uses."""

    def __init__(self, buffers, number=None):
        self.number = c_uint64() if number is None else number
        self.buffers = buffers

    def done(self):
        return self.number.value == 0 or _core.library().rm_poll(self.number) != 0

    def wait(self):
        """Waits and raises the operation's error. Interrupted, it can be waited for again."""
        wait(self.number)

    def until_done(self):
        """Waits, and leaves result and error to whom they belong."""
        while not self.done():
            _core.library().rm_wait(self.number, WAIT_SLICE)

    def result(self, rows_by_rank=None):
        """Address and number of the rows that the library keeps for this operation until it is
        released. `rows_by_rank`: a list that gets how many of them each rank has sent."""
        address, rows, ranks = c_void_p(), c_size_t(), c_size_t()
        counts = POINTER(c_size_t)()
        _core.call("rm_result", self.number, byref(address), byref(rows), byref(counts),
                   byref(ranks))
        if rows_by_rank is not None:
            rows_by_rank.extend(counts[rank] for rank in range(ranks.value))
        return address.value, rows.value

    def members(self):
        """As of a Group."""
        return [self]

    def release(self, known_done=False):
        """Nobody wants the result. The buffers go as soon as the library is done with them."""
        if not known_done and not self.done():
            _abandoned.add(self)
            return
        _core.library().rm_release(self.number)
        _in_flight.discard(self)
        self.number, self.buffers = c_uint64(), None


class Group:
    """Operations that the library was given as a group; otherwise as Operation."""

    def __init__(self, buffers, count):
        self.numbers = (c_uint64 * count)()
        self.buffers = buffers

    def done(self):
        poll = _core.library().rm_poll
        # Mostly the last one is done last.
        return self.numbers is None or all(poll(number) != 0 for number in reversed(self.numbers))

    def wait(self):
        lib, count = _core.library(), len(self.numbers)
        status = lib.rm_wait_all(self.numbers, count, WAIT_SLICE)
        while status == errors.TIMEOUT and not self.done():
            status = lib.rm_wait_all(self.numbers, count, WAIT_SLICE)
        if status == errors.TIMEOUT:  # of the slice: they have completed just after
            status = lib.rm_wait_all(self.numbers, count, WAIT_SLICE)
        errors.check(status, lib)

    def members(self):
        """The operation of each request, for its result."""
        return [Operation(None, c_uint64(number)) for number in self.numbers]

    def release(self, known_done=False):
        if not known_done and not self.done():
            _abandoned.add(self)
            return
        numbers, self.numbers = self.numbers, None
        if numbers is None:  # another thread releases it
            return
        _core.library().rm_release_all(numbers, len(numbers))
        _in_flight.discard(self)
        self.buffers = None


def wait(number):
    lib = _core.library()
    status = lib.rm_wait(number, WAIT_SLICE)
    while status == errors.TIMEOUT and lib.rm_poll(number) == 0:
        status = lib.rm_wait(number, WAIT_SLICE)
    if status == errors.TIMEOUT:  # of the slice: it has completed just after
        status = lib.rm_wait(number, WAIT_SLICE)
    errors.check(status, lib)


def start(function, *args, buffers=None):
    """Calls a library function whose last argument is the handle; `buffers`: what it may touch."""
    _release_abandoned()
    operation = Operation(buffers)
    _in_flight.add(operation)  # before the call: an interrupt may come right after it
    try:
        _core.call(function, *args, byref(operation.number))
    finally:
        if operation.number.value == 0:
            _in_flight.discard(operation)
    return operation


def submit(request, buffers):
    """Asks for one operation. `buffers`: what the library may touch; what the request itself holds
    (the event that its input waits for) is kept as long.
    """
    return start("rm_submit", byref(request), 1, buffers=(buffers, request))


def submit_group(requests, buffers, finish):
    """Asks for all of `requests`, or none; more than one are a group. Returns a handle of the list
    of results.

    `requests`: a list or an array of them. `buffers`: as for submit(). `finish`: makes this list of
    the finished Group, or of an Operation if there is one request.
    """
    if not len(requests):
        return GroupHandle([])
    if len(requests) == 1:
        return Handle(submit(requests[0], (buffers, requests)), finish)
    _release_abandoned()
    count = len(requests)
    group = Group((buffers, requests), count)
    _in_flight.add(group)  # before the call: an interrupt may come right after it
    try:
        array = (Request * count)(*requests) if isinstance(requests, list) else requests
        _core.call("rm_submit", array, count, group.numbers)
    finally:
        if not group.numbers[0]:
            _in_flight.discard(group)
    return Handle(group, finish)


def _release_abandoned():
    for operation in list(_abandoned):
        if operation.done():
            _abandoned.discard(operation)
            operation.release()


class Handle:
    """What a script has of an operation: to wait for it, and to get its result."""

    _operation = None  # torch.compile makes objects without __init__

    def __init__(self, operation, finish):
        self._operation = operation
        self._finish = finish  # gets the operation when it is done, returns the result

    def single(self):
        """Of one request's list of results the only one."""
        return Then(self, lambda results: results[0])

    def done(self):
        return self._operation is None or self._operation.done()

    def wait(self):
        if self._operation is None:
            raise ValueError("handle: has been synchronized already")
        operation, is_done = self._operation, False
        try:
            operation.wait()
            is_done = True
            return self._finish(operation)
        finally:
            if is_done or operation.done():  # else interrupted
                self._operation = None
                operation.release(known_done=True)

    def __del__(self):
        if self._operation is not None and not sys.is_finalizing():
            self._operation.release()


class GroupHandle:
    """The handle of operations that were asked for as one."""

    def __init__(self, handles):
        self._handles = handles
        self._results = []  # of the first ones: whoever is interrupted waits once more for the rest

    def single(self):
        handle, = self._handles
        return handle

    def done(self):
        return all(handle.done() for handle in self._handles)

    def wait(self):
        if self._results is None:
            raise ValueError("handle: has been synchronized already")
        for handle in self._handles[len(self._results):]:
            self._results.append(handle.wait())
        results, self._results = self._results, None
        return results


class Then:
    """A handle whose result is made of another one's."""

    def __init__(self, handle, make):
        self._handle = handle
        self._make = make
        self.done = handle.done

    def wait(self):
        return self._make(self._handle.wait())


@atexit.register
def _outlive_the_interpreter():
    # Its end frees everything, and the library's thread may still be writing.
    for operation in list(_in_flight):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(operation))
