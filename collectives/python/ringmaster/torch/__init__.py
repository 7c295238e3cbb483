"""Ringmaster for PyTorch: Horovod's names and semantics over the Ringmaster library.

    import ringmaster.torch as rm

docs/python.md lists what differs from Horovod.
"""

from ringmaster import (HorovodInternalError, HostsUpdatedInterrupt, Left, ProcessSet,
                        RootLostError, WorkerDroppedError, add_process_set, ccl_built, cross_rank,
                        cross_size, cuda_built, ddl_built, end_step, enter, global_process_set,
                        gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, is_joining,
                        last_rebuild, last_step, local_rank, local_size, mpi_built, mpi_enabled,
                        mpi_threads_supported, nccl_built, on_resize, rank, remove_process_set,
                        report, rocm_built, shutdown, size, start_timeline, step_view,
                        stop_timeline, view)
from ringmaster.barriers import barrier, join
from ringmaster.reductions import Adasum, Average, Max, Min, Product, Sum
from ringmaster.torch import elastic
from ringmaster.torch.compression import Compression
from ringmaster.torch.functions import (allgather_object, broadcast_object,
                                        broadcast_optimizer_state, broadcast_parameters)
from ringmaster.torch.handles import poll, synchronize
from ringmaster.torch.operations import (allgather, allgather_async, allreduce, allreduce_,
                                         allreduce_async, allreduce_async_, alltoall,
                                         alltoall_async, broadcast, broadcast_, broadcast_async,
                                         broadcast_async_, grouped_allgather,
                                         grouped_allgather_async, grouped_allreduce,
                                         grouped_allreduce_, grouped_allreduce_async,
                                         grouped_allreduce_async_, grouped_reducescatter,
                                         grouped_reducescatter_async, recv, recv_async,
                                         reducescatter, reducescatter_async, send, send_async,
                                         sparse_allreduce_async)
from ringmaster.torch.optimizer import DistributedOptimizer
from ringmaster.torch.prepared import prepare_grouped_allreduce
from ringmaster.torch.sync_batch_norm import SyncBatchNorm

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "HorovodInternalError",
    "HostsUpdatedInterrupt", "Left", "Max", "Min", "ProcessSet", "Product", "RootLostError",
    "Sum", "SyncBatchNorm", "WorkerDroppedError", "add_process_set", "allgather",
    "allgather_async", "allgather_object", "allreduce", "allreduce_", "allreduce_async",
    "allreduce_async_", "alltoall", "alltoall_async", "barrier", "broadcast", "broadcast_",
    "broadcast_async", "broadcast_async_", "broadcast_object", "broadcast_optimizer_state",
    "broadcast_parameters", "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built",
    "elastic", "end_step", "enter", "global_process_set", "gloo_built", "gloo_enabled",
    "grouped_allgather", "grouped_allgather_async", "grouped_allreduce", "grouped_allreduce_",
    "grouped_allreduce_async", "grouped_allreduce_async_", "grouped_reducescatter",
    "grouped_reducescatter_async", "init", "is_homogeneous", "is_initialized", "is_joining",
    "join", "last_rebuild", "last_step", "local_rank", "local_size", "mpi_built", "mpi_enabled",
    "mpi_threads_supported", "nccl_built", "on_resize", "poll", "prepare_grouped_allreduce", "rank", "recv", "recv_async",
    "reducescatter", "reducescatter_async", "remove_process_set", "report", "rocm_built", "send",
    "send_async", "shutdown", "size", "sparse_allreduce_async", "start_timeline", "step_view", "stop_timeline", "synchronize", "view"
]
