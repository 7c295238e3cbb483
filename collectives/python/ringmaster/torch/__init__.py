"""Ringmaster for PyTorch: Horovod's names and semantics over the Ringmaster library.

    import ringmaster.torch as rm

docs/python.md lists what differs from Horovod.
"""

from ringmaster import (HorovodInternalError, HostsUpdatedInterrupt, Left, cross_rank, cross_size,
                        end_step, enter, init, is_initialized, is_joining, last_rebuild, last_step,
                        local_rank, local_size, on_resize, rank, report, shutdown, size, step_view,
                        view)
from ringmaster.torch import elastic
from ringmaster.torch.compression import Compression
from ringmaster.torch.functions import (allgather_object, broadcast_object,
                                        broadcast_optimizer_state, broadcast_parameters)
from ringmaster.torch.operations import (Average, Max, Min, Product, Sum, allgather,
                                         allgather_async, allreduce, allreduce_, allreduce_async,
                                         allreduce_async_, barrier, broadcast, broadcast_,
                                         broadcast_async, broadcast_async_, grouped_allreduce,
                                         grouped_allreduce_, poll, synchronize)
from ringmaster.torch.optimizer import DistributedOptimizer

__all__ = [
    "Average", "Compression", "DistributedOptimizer", "HorovodInternalError",
    "HostsUpdatedInterrupt", "Left", "Max", "Min", "Product", "Sum", "allgather", "allgather_async",
    "allgather_object", "allreduce", "allreduce_", "allreduce_async", "allreduce_async_", "barrier",
    "broadcast", "broadcast_", "broadcast_async", "broadcast_async_", "broadcast_object",
    "broadcast_optimizer_state", "broadcast_parameters", "cross_rank", "cross_size", "elastic",
    "end_step", "enter", "grouped_allreduce", "grouped_allreduce_", "init",
    "is_initialized", "is_joining", "last_rebuild", "last_step", "local_rank", "local_size",
    "on_resize", "poll", "rank", "report", "shutdown", "size", "step_view", "synchronize",
    "view"
]
