"""Broadcast and allgather of picklable objects over the library's byte collectives, without torch.
"""

import ctypes
import pickle
from ctypes import POINTER, byref, c_size_t, c_void_p

from ringmaster import _core, _in_flight, _library, _pickled
from ringmaster._library import Request
from ringmaster.process_sets import global_process_set

_UINT8 = 0
_NOTHING = object()  # of a rank that sent no bytes: None is an object, too


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """The root's object on every rank of the set. `root_rank` is a rank of the world."""
    return broadcast_made(lambda: obj, root_rank, name, process_set)[0]


def broadcast_made(make, root_rank=0, name=None, process_set=global_process_set):
    """(what make() gives on the root, whether this worker is the root): nobody else makes it.

    Who is the root is looked up once: ranks may move at any moment. Where the root can't make or
    pickle it all ranks raise an error.
    """
    name = name or _auto_name("broadcast_object", process_set)
    root = _core.worker_at(root_rank)
    sends = root == _core.own_worker()
    obj, data, error = _pickled.made(make, _this_rank) if sends else (None, b"", None)
    # One operation for length and bytes: a root that dies fails it for all ranks alike.
    received = _exchange(_library.BROADCAST_BYTES, name, data, process_set, root=root.encode())
    if error is not None:
        raise error
    return (obj, True) if sends else (_only(_without_failures(received)), False)


def _only(parts):
    sent, = (part for part in parts if part is not _NOTHING)
    return sent


def allgather_object(obj, name=None, process_set=global_process_set):
    """A list with the object of each rank of the set, in rank order."""
    return allgather_made(lambda: obj, name, process_set)


def allgather_made(make, name=None, process_set=global_process_set):
    """allgather_object() of what make() gives. Where one rank can't make or pickle its own all
    ranks raise an error.
    """
    name = name or _auto_name("allgather_object", process_set)
    _, data, error = _pickled.made(make, _this_rank)
    parts = _exchange(_library.ALLGATHER, name, data, process_set)
    if error is not None:
        raise error
    return [None if part is _NOTHING else part for part in _without_failures(parts)]


def _this_rank():
    _core.enter()  # a joiner has its rank from then on
    return "rank %d" % _core.step_view().rank


def _without_failures(parts):
    for part in parts:
        if isinstance(part, _pickled.Failure):
            raise ValueError(part.text)
    return parts


def _auto_name(kind, process_set):
    number = process_set.number()
    return _core.auto_name("%s.set%d" % (kind, number) if number else kind)


def _exchange(kind, name, data, process_set, **fields):
    shape = (c_size_t * 1)(len(data))
    buffer = ctypes.cast(ctypes.c_char_p(data), c_void_p)
    request = Request(kind, name.encode(), process_set.number(), input=buffer, shape=shape,
                      dimensions=1, dtype=_UINT8, **fields)
    operation = _in_flight.submit(request, data)
    return _in_flight.Handle(operation, _unpickled).wait()


def _unpickled(operation):
    """The object that each rank gave to a finished operation; _NOTHING where it gave none."""
    address, rows, ranks = c_void_p(), c_size_t(), c_size_t()
    rows_by_rank = POINTER(c_size_t)()
    _core.call("rm_result", operation.number, byref(address), byref(rows), byref(rows_by_rank),
               byref(ranks))
    parts, at = [], address.value or 0
    for rank in range(ranks.value):
        length = rows_by_rank[rank]
        parts.append(pickle.loads(_core.memory(at, length)) if length else _NOTHING)
        at += length
    return parts
