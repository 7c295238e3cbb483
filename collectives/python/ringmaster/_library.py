"""Finds libringmaster.so, checks its ABI version and declares the functions of ringmaster.h.

There is no compile step and no framework's ABI here: an upgrade of PyTorch needs nothing of us.
"""

import ctypes
import ctypes.util
import os
import threading
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p

ABI_VERSION = 1
FILE = "libringmaster.so"

SAVE = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), POINTER(c_size_t))
LOAD = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


class StepInfo(ctypes.Structure):
    """rm_step_info."""
    # rm_step_info calls the view's number `epoch`; in Python an epoch is a pass over the data.
    _fields_ = [("view", c_uint64), ("step", c_uint64), ("old_size", c_int), ("new_size", c_int),
                ("view_changed", c_int), ("state_synced", c_int)]


class Tensor(ctypes.Structure):
    """rm_tensor."""
    _fields_ = [("shape", POINTER(c_size_t)), ("dimensions", c_int), ("dtype", c_int)]


class Request(ctypes.Structure):
    """rm_request."""
    _fields_ = [("size", c_size_t), ("kind", c_int), ("process_set", c_int), ("name", c_char_p),
                ("prescale", c_double), ("postscale", c_double), ("input", c_void_p),
                ("output", c_void_p), ("shape", POINTER(c_size_t)), ("dimensions", c_int),
                ("dtype", c_int), ("op", c_int), ("priority", c_int), ("splits", POINTER(c_size_t)),
                ("splits_count", c_size_t), ("root", c_char_p), ("device", c_int),
                ("ready_event", c_void_p)]

    def __init__(self, kind, name, process_set=0, prescale=1.0, postscale=1.0, **fields):
        super().__init__(ctypes.sizeof(Request), kind, process_set, name, prescale, postscale,
                         **fields)


ALLREDUCE, ALLGATHER, BROADCAST, BROADCAST_BYTES, BARRIER, REDUCESCATTER, ALLTOALL, \
    JOIN, SEND, RECEIVE = range(1, 11)


# name: (result, arguments). A result of None is void; c_int is rm_status unless the header says
# otherwise.
_FUNCTIONS = {
    "rm_abi_version": (c_int, []),
    "rm_version": (c_char_p, []),
    "rm_last_error": (c_char_p, []),
    "rm_dtype_size": (c_size_t, [c_int]),
    "rm_init": (c_int, [c_double]),
    "rm_initialized": (c_int, []),
    "rm_nccl_version": (c_int, []),
    "rm_mpi_built": (c_int, []),
    "rm_mpi_enabled": (c_int, []),
    "rm_is_joining": (c_int, []),
    "rm_enter": (c_int, [c_double]),
    "rm_shutdown": (c_int, [c_double]),
    "rm_shutdown_at_exit": (c_int, []),
    "rm_rank": (c_int, []),
    "rm_last_rank": (c_int, []),
    "rm_size": (c_int, []),
    "rm_local_rank": (c_int, []),
    "rm_local_size": (c_int, []),
    "rm_cross_rank": (c_int, []),
    "rm_cross_size": (c_int, []),
    "rm_epoch": (c_uint64, []),
    "rm_submit": (c_int, [POINTER(Request), c_size_t, POINTER(c_uint64)]),
    "rm_prepare": (c_int, [c_char_p, POINTER(Request), c_size_t, POINTER(c_uint64)]),
    "rm_submit_group": (c_int, [c_uint64, c_void_p, POINTER(c_uint64)]),
    "rm_free_group": (None, [c_uint64]),
    "rm_result": (c_int, [c_uint64, POINTER(c_void_p), POINTER(c_size_t),
                          POINTER(POINTER(c_size_t)), POINTER(c_size_t)]),
    "rm_allreduce_async": (c_int, [c_char_p, c_void_p, c_void_p, c_size_t, c_int, c_int, c_double,
                                   c_double, POINTER(c_uint64)]),
    "rm_allreduce_tensor_async": (c_int, [c_char_p, c_void_p, c_void_p, POINTER(Tensor), c_int,
                                          c_double, c_double, POINTER(c_uint64)]),
    "rm_allgather_async": (c_int, [c_char_p, c_void_p, c_size_t, c_size_t, c_int,
                                   POINTER(c_uint64)]),
    "rm_allgather_tensor_async": (c_int, [c_char_p, c_void_p, POINTER(Tensor),
                                          POINTER(c_uint64)]),
    "rm_allgather_result": (c_int, [c_uint64, POINTER(c_void_p), POINTER(c_size_t),
                                    POINTER(POINTER(c_size_t)), POINTER(c_size_t)]),
    "rm_worker_id": (c_char_p, [c_int]),
    "rm_step_worker_id": (c_char_p, [c_int]),
    "rm_step_epoch": (c_uint64, []),
    "rm_broadcast_tensor_async": (c_int, [c_char_p, c_void_p, POINTER(Tensor), c_char_p,
                                          POINTER(c_uint64)]),
    "rm_broadcast_bytes_async": (c_int, [c_char_p, c_void_p, c_size_t, c_char_p,
                                         POINTER(c_uint64)]),
    "rm_barrier_async": (c_int, [c_char_p, POINTER(c_uint64)]),
    "rm_join_async": (c_int, [POINTER(c_uint64)]),
    "rm_join_result": (c_int, [c_uint64, POINTER(c_int)]),
    "rm_process_set_add_async": (c_int, [POINTER(c_int), c_size_t, POINTER(c_uint64)]),
    "rm_process_set_remove_async": (c_int, [c_int, POINTER(c_uint64)]),
    "rm_process_set_number": (c_int, [c_uint64, POINTER(c_int)]),
    "rm_process_set_ranks": (c_int, [c_int, POINTER(c_int), c_size_t, POINTER(c_size_t)]),
    "rm_poll": (c_int, [c_uint64]),
    "rm_wait": (c_int, [c_uint64, c_double]),
    "rm_release": (None, [c_uint64]),
    "rm_wait_all": (c_int, [POINTER(c_uint64), c_size_t, c_double]),
    "rm_release_all": (None, [POINTER(c_uint64), c_size_t]),
    "rm_step_end": (c_int, [POINTER(StepInfo)]),
    "rm_state_callbacks": (c_int, [SAVE, LOAD, c_void_p]),
    "rm_report": (c_int, [c_char_p, c_double]),
    "rm_last_rebuild": (c_char_p, []),
    "rm_timeline_start": (c_int, [c_char_p]),
    "rm_timeline_stop": (c_int, []),
}

_lock = threading.Lock()
_loaded = None


def candidates(environ=os.environ, package=os.path.dirname(os.path.abspath(__file__))):
    """Where the library may be, in order. RINGMASTER_LIBRARY, if set, is the only one."""
    named = environ.get("RINGMASTER_LIBRARY")
    if named:
        return [named]
    above = os.path.dirname(package)
    places = [package, os.path.join(package, "..", "lib"), above, os.path.join(above, "..", "lib"),
              os.path.join(above, "..")]  # the last: as the install container lays it out
    return [os.path.normpath(os.path.join(place, FILE)) for place in places] + [FILE]


def load(paths=None):
    """Loads the library of the first of `paths` that exists; says all that was tried otherwise."""
    paths = candidates() if paths is None else paths
    tried = []
    for path in paths:
        if os.sep in path and not os.path.exists(path):
            tried.append(path + ": no such file")
            continue
        try:
            return _declare(ctypes.CDLL(path), path)
        except OSError as error:
            tried.append("%s: %s" % (path, error))
    raise ImportError("libringmaster.so was not found; RINGMASTER_LIBRARY can name it. Tried:\n  "
                      + "\n  ".join(tried))


def _declare(library, path):
    try:
        version = library.rm_abi_version()
    except AttributeError:
        raise ImportError("%s is not the Ringmaster library: it has no rm_abi_version" % path)
    if version != ABI_VERSION:
        raise ImportError("%s has ABI version %d, this Python package needs %d: install both from "
                          "the same release" % (path, version, ABI_VERSION))
    for name, (result, arguments) in _FUNCTIONS.items():
        if not hasattr(library, name):
            raise ImportError("%s has no function %s, which this Python package needs: it is of "
                              "another version; install both from the same release" % (path, name))
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def get():
    """The library of this process, loaded at the first use."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = load()
    return _loaded
