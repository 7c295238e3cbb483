"""Ringmaster: elastic allreduce training. `import ringmaster.torch as rm` for PyTorch.

This package needs nothing but the library (libringmaster.so) and the standard library of Python.
"""

from ringmaster._core import (cross_rank, cross_size, end_step, enter, is_initialized, is_joining,
                              last_rebuild, last_step, local_rank, local_size, on_resize, rank,
                              register_state, report, shutdown, size, step_view, unregister_state,
                              view)
from ringmaster._recording import start_timeline, stop_timeline
from ringmaster.errors import (HorovodInternalError, HostsUpdatedInterrupt, Left, RootLostError,
                               WorkerDroppedError)
from ringmaster.process_sets import (ProcessSet, add_process_set, global_process_set, init,
                                     remove_process_set)
from ringmaster.queries import (ccl_built, cuda_built, ddl_built, gloo_built, gloo_enabled,
                                is_homogeneous, mpi_built, mpi_enabled, mpi_threads_supported,
                                nccl_built, rocm_built)

__version__ = "0.1.0"

__all__ = [
    "HorovodInternalError", "HostsUpdatedInterrupt", "Left", "ProcessSet", "RootLostError",
    "WorkerDroppedError", "add_process_set", "ccl_built", "cross_rank", "cross_size",
    "cuda_built", "ddl_built", "end_step", "enter", "global_process_set", "gloo_built",
    "gloo_enabled", "init", "is_homogeneous", "is_initialized", "is_joining", "last_rebuild",
    "last_step", "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported",
    "nccl_built", "on_resize", "rank", "register_state", "remove_process_set", "report",
    "rocm_built", "shutdown", "size", "start_timeline", "step_view", "stop_timeline",
    "unregister_state", "view"
]
