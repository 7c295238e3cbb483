"""Operations that move no data: barrier and join."""

from ctypes import byref, c_int

from ringmaster import _core, _in_flight, _library
from ringmaster._library import Request
from ringmaster._requests import full_name
from ringmaster.process_sets import global_process_set


def barrier(process_set=global_process_set):
    """Returns when all ranks of the set have called it."""
    request = Request(_library.BARRIER, full_name("barrier", None, process_set),
                      process_set.number())
    operation = _in_flight.submit(request, None)
    _in_flight.Handle(operation, lambda _: None).wait()


def join(device=-1):
    """This rank has no more data: it takes part with nothing until all ranks have joined.

    Returns the last rank that joined, the same on all ranks. `device` is for Horovod's scripts.
    """
    del device
    last = c_int()
    operation = _in_flight.start("rm_join_async")
    _in_flight.Handle(operation, lambda done: _core.call("rm_join_result", done.number,
                                                         byref(last))).wait()
    _core.end_join()
    return last.value
