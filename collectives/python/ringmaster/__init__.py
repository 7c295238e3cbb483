"""Ringmaster: elastic allreduce training. `import ringmaster.torch as rm` for PyTorch.

This package needs nothing but the library (libringmaster.so) and the standard library of Python.
"""

from ringmaster._core import (cross_rank, cross_size, end_step, enter, init, is_initialized,
                              is_joining, last_rebuild, last_step, local_rank, local_size,
                              on_resize, rank, register_state, report, shutdown, size, step_view,
                              unregister_state, view)
from ringmaster.errors import HorovodInternalError, HostsUpdatedInterrupt, Left

__version__ = "0.1.0"

__all__ = [
    "HorovodInternalError", "HostsUpdatedInterrupt", "Left", "cross_rank", "cross_size", "end_step",
    "enter", "init", "is_initialized", "is_joining", "last_rebuild", "last_step",
    "local_rank", "local_size", "on_resize", "rank", "register_state", "report", "shutdown", "size",
    "step_view", "unregister_state", "view"
]
