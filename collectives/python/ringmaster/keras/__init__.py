"""Ringmaster for Keras (2 and 3, on TensorFlow): Horovod's names and semantics.

    import ringmaster.keras as rm

Serves `import horovod.keras as hvd` and `import horovod.tensorflow.keras as hvd`. docs/horovod.md
lists the names.
"""

from ringmaster.keras import callbacks, elastic
from ringmaster.keras.functions import (DistributedOptimizer, allgather, allreduce, broadcast,
                                        broadcast_global_variables, load_model, reducescatter)
from ringmaster.tensorflow import (Adasum, Average, Compression, HorovodInternalError,
                                   HostsUpdatedInterrupt, Left, Max, Min,
                                   PartialDistributedOptimizer, ProcessSet, Product, RootLostError,
                                   Sum, SyncBatchNormalization, WorkerDroppedError,
                                   add_process_set, allgather_object, barrier, broadcast_object,
                                   broadcast_variables, ccl_built, cross_rank, cross_size,
                                   cuda_built, ddl_built, end_step, enter, global_process_set,
                                   gloo_built, gloo_enabled, init, is_homogeneous, is_initialized,
                                   is_joining, join, last_rebuild, last_step, local_rank,
                                   local_size, mpi_built, mpi_enabled, mpi_threads_supported,
                                   nccl_built, on_resize, rank, remove_process_set, report,
                                   rocm_built, shutdown, size, start_timeline, step_view,
                                   stop_timeline, view)

__all__ = [
    "Adasum", "Average", "Compression", "DistributedOptimizer", "HorovodInternalError",
    "HostsUpdatedInterrupt", "Left", "Max", "Min", "PartialDistributedOptimizer", "ProcessSet",
    "Product", "RootLostError", "Sum", "SyncBatchNormalization", "WorkerDroppedError",
    "add_process_set", "allgather", "allgather_object", "allreduce", "barrier", "broadcast",
    "broadcast_global_variables", "broadcast_object", "broadcast_variables", "callbacks",
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "end_step",
    "enter", "global_process_set", "gloo_built", "gloo_enabled", "init", "is_homogeneous",
    "is_initialized", "is_joining", "join", "last_rebuild", "last_step", "load_model",
    "local_rank", "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "on_resize", "rank", "reducescatter", "remove_process_set", "report", "rocm_built", "shutdown",
    "size", "start_timeline", "step_view", "stop_timeline", "view"
]
