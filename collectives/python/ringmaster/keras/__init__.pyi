from typing import Any, Mapping, Optional, Sequence, Type, Union

from ringmaster import (HorovodInternalError as HorovodInternalError,
                        HostsUpdatedInterrupt as HostsUpdatedInterrupt, Left as Left,
                        ProcessSet as ProcessSet, RootLostError as RootLostError,
                        WorkerDroppedError as WorkerDroppedError,
                        add_process_set as add_process_set, ccl_built as ccl_built,
                        cross_rank as cross_rank, cross_size as cross_size,
                        cuda_built as cuda_built, ddl_built as ddl_built, end_step as end_step,
                        enter as enter, global_process_set as global_process_set,
                        gloo_built as gloo_built, gloo_enabled as gloo_enabled, init as init,
                        is_homogeneous as is_homogeneous, is_initialized as is_initialized,
                        is_joining as is_joining, last_rebuild as last_rebuild,
                        last_step as last_step, local_rank as local_rank, local_size as local_size,
                        mpi_built as mpi_built, mpi_enabled as mpi_enabled,
                        mpi_threads_supported as mpi_threads_supported, nccl_built as nccl_built,
                        on_resize as on_resize, rank as rank,
                        remove_process_set as remove_process_set, report as report,
                        rocm_built as rocm_built, shutdown as shutdown, size as size,
                        start_timeline as start_timeline, step_view as step_view,
                        stop_timeline as stop_timeline, view as view)
from ringmaster.keras import callbacks as callbacks, elastic as elastic
from ringmaster.tensorflow import (Compression as Compression,
                                   PartialDistributedOptimizer as PartialDistributedOptimizer,
                                   SyncBatchNormalization as SyncBatchNormalization,
                                   allgather_object as allgather_object, barrier as barrier,
                                   broadcast_object as broadcast_object,
                                   broadcast_variables as broadcast_variables, join as join)
from ringmaster.tensorflow import Compressor

Average: int
Sum: int
Min: int
Max: int
Product: int
Adasum: int

def DistributedOptimizer(optimizer: Any, name: Optional[str] = ..., device_dense: str = ...,
                         device_sparse: str = ..., compression: Type[Compressor] = ...,
                         sparse_as_dense: bool = ..., gradient_predivide_factor: float = ...,
                         op: int = ..., backward_passes_per_step: int = ...,
                         average_aggregated_gradients: bool = ..., num_groups: int = ...,
                         groups: Union[None, int, Sequence[Any]] = ...,
                         process_set: ProcessSet = ...,
                         scale_local_gradients: bool = ..., *,
                         sampler: Optional[elastic.ElasticSampler] = ...) -> Any: ...
def allgather(value: Any, name: Optional[str] = ...) -> Any: ...
def allreduce(value: Any, name: Optional[str] = ..., average: Optional[bool] = ...,
              prescale_factor: float = ..., postscale_factor: float = ..., op: Optional[int] = ...,
              compression: Type[Compressor] = ...) -> Any: ...
def broadcast(value: Any, root_rank: int, name: Optional[str] = ...) -> Any: ...
def broadcast_global_variables(root_rank: int) -> None: ...
def load_model(filepath: str, custom_optimizers: Optional[Sequence[type]] = ...,
               custom_objects: Optional[Mapping[str, Any]] = ...,
               compression: Type[Compressor] = ..., legacy_opts: bool = ...) -> Any: ...
def reducescatter(value: Any, name: Optional[str] = ..., op: int = ...) -> Any: ...
