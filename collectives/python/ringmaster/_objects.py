"""Broadcast and allgather of picklable objects over the library's byte collectives, without torch.
"""

import ctypes
import pickle
from ctypes import POINTER, byref, c_size_t, c_uint64, c_void_p

from ringmaster import _core, errors

_UINT8, _INT64 = 0, 3

# rm_wait blocks outside Python: come back this often so that Ctrl-C and signal handlers run.
WAIT_SLICE = 0.5


def wait(handle):
    """Waits for an operation and raises its error. The handle stays valid."""
    lib = _core.library()
    while True:
        status = lib.rm_wait(handle, WAIT_SLICE)
        if status != errors.TIMEOUT or lib.rm_poll(handle) != 0:
            break
    errors.check(status, lib)


def run_to_end(function, *args):
    """Starts an operation (its last argument is the handle), waits, and gives the handle back."""
    handle = c_uint64()
    _core.call(function, *args, byref(handle))
    try:
        wait(handle)
    finally:
        _core.library().rm_release(handle)


def broadcast_object(value, root_rank=0, name=None):
    """The root's object on every rank."""
    name = name or _core.auto_name("broadcast_object")
    root = _core.rank() == root_rank
    data = pickle.dumps(value, protocol=5) if root else b""
    size = ctypes.c_int64(len(data))
    run_to_end("rm_broadcast_async", (name + ".size").encode(), byref(size), 1, _INT64, root_rank)
    buffer = (ctypes.c_char * max(1, size.value))()
    if root:
        ctypes.memmove(buffer, data, len(data))
    run_to_end("rm_broadcast_async", (name + ".data").encode(), buffer, size.value, _UINT8,
               root_rank)
    return value if root else pickle.loads(bytes(buffer))


def allgather_object(value, name=None):
    """A list with the object of each rank, in rank order."""
    name = name or _core.auto_name("allgather_object")
    data = pickle.dumps(value, protocol=5)
    handle = c_uint64()
    _core.call("rm_allgather_async", name.encode(), data, len(data), 1, _UINT8, byref(handle))
    try:
        wait(handle)
        return [pickle.loads(part) for part in gathered(handle)]
    finally:
        _core.library().rm_release(handle)


def gathered(handle, row_bytes=1):
    """The bytes that each rank gave to a finished allgather."""
    address, rows, ranks = c_void_p(), c_size_t(), c_size_t()
    rows_by_rank = POINTER(c_size_t)()
    _core.call("rm_allgather_result", handle, byref(address), byref(rows), byref(rows_by_rank),
               byref(ranks))
    parts, at = [], address.value or 0
    for rank in range(ranks.value):
        length = rows_by_rank[rank] * row_bytes
        parts.append(ctypes.string_at(at, length) if length else b"")
        at += length
    return parts
