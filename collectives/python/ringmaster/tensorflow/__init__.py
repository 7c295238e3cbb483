"""Ringmaster for TensorFlow: Horovod's names and semantics over the Ringmaster library.

    import ringmaster.tensorflow as rm

Eager mode, tf.function and graphs of tf.compat.v1; TensorFlow 2.15 and newer, with Keras 2 or 3.
docs/horovod.md lists the names, docs/python.md what differs from Horovod.
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
from ringmaster.tensorflow import elastic
from ringmaster.tensorflow.compression import Compression
from ringmaster.tensorflow.functions import (BroadcastGlobalVariablesHook, allgather_object,
                                             broadcast_global_variables, broadcast_object,
                                             broadcast_object_fn, broadcast_variables)
from ringmaster.tensorflow.operations import (allgather, allreduce, alltoall, broadcast,
                                              broadcast_, grouped_allgather, grouped_allreduce,
                                              grouped_reducescatter, local_rank_op, local_size_op,
                                              process_set_included_op, rank_op, reducescatter,
                                              size_op)
from ringmaster.tensorflow.optimizer import (DistributedAdasumOptimizer, DistributedOptimizer,
                                             PartialDistributedOptimizer)
from ringmaster.tensorflow.sync_batch_norm import SyncBatchNormalization
from ringmaster.tensorflow.tape import DistributedGradientTape, PartialDistributedGradientTape

__all__ = [
    "Adasum", "Average", "BroadcastGlobalVariablesHook", "Compression",
    "DistributedAdasumOptimizer", "DistributedGradientTape", "DistributedOptimizer",
    "HorovodInternalError", "HostsUpdatedInterrupt", "Left", "Max", "Min",
    "PartialDistributedGradientTape", "PartialDistributedOptimizer", "ProcessSet", "Product",
    "RootLostError", "Sum", "SyncBatchNormalization", "WorkerDroppedError", "add_process_set",
    "allgather", "allgather_object", "allreduce", "alltoall", "barrier", "broadcast", "broadcast_",
    "broadcast_global_variables", "broadcast_object", "broadcast_object_fn", "broadcast_variables",
    "ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "elastic", "end_step",
    "enter", "global_process_set", "gloo_built", "gloo_enabled", "grouped_allgather",
    "grouped_allreduce", "grouped_reducescatter", "init", "is_homogeneous", "is_initialized",
    "is_joining", "join", "last_rebuild", "last_step", "local_rank", "local_rank_op", "local_size",
    "local_size_op", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
    "on_resize", "process_set_included_op", "rank", "rank_op", "reducescatter",
    "remove_process_set", "report", "rocm_built", "shutdown", "size", "size_op", "start_timeline",
    "step_view", "stop_timeline", "view"
]
