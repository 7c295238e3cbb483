from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Type, Union

import tensorflow as tf

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
from ringmaster.tensorflow import elastic as elastic

_Tensor = Union[tf.Tensor, tf.Variable, tf.IndexedSlices]

Average: int
Sum: int
Min: int
Max: int
Product: int
Adasum: int

class Compressor:
    @staticmethod
    def compress(tensor: tf.Tensor) -> Tuple[tf.Tensor, Any]: ...
    @staticmethod
    def decompress(tensor: tf.Tensor, ctx: Any) -> tf.Tensor: ...

class Compression:
    none: Type[Compressor]
    fp16: Type[Compressor]

class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    def __init__(self, root_rank: int, device: str = ...) -> None: ...

class SyncBatchNormalization(tf.keras.layers.BatchNormalization):
    def __init__(self, fused: bool = ..., process_set: ProcessSet = ..., **kwargs: Any) -> None: ...

def barrier(process_set: ProcessSet = ...) -> None: ...
def join(device: int = ...) -> int: ...
def DistributedAdasumOptimizer(optimizer: Any, name: Optional[str] = ..., use_locking: bool = ...,
                               device_dense: str = ..., device_sparse: str = ...,
                               compression: Type[Compressor] = ...,
                               backward_passes_per_step: int = ...) -> Any: ...
def DistributedGradientTape(gradtape: tf.GradientTape, device_dense: str = ...,
                            device_sparse: str = ..., compression: Type[Compressor] = ...,
                            sparse_as_dense: bool = ..., op: int = ...,
                            gradient_predivide_factor: float = ..., num_groups: int = ...,
                            groups: Union[None, int, Sequence[Any]] = ...,
                            process_set: ProcessSet = ...,
                            scale_local_gradients: bool = ..., *,
                            sampler: Optional[elastic.ElasticSampler] = ...) -> Any: ...
def DistributedOptimizer(optimizer: Any, name: Optional[str] = ..., use_locking: bool = ...,
                         device_dense: str = ..., device_sparse: str = ...,
                         compression: Type[Compressor] = ..., sparse_as_dense: bool = ...,
                         backward_passes_per_step: int = ..., op: int = ...,
                         gradient_predivide_factor: float = ...,
                         average_aggregated_gradients: bool = ..., num_groups: int = ...,
                         groups: Union[None, int, Sequence[Any]] = ...,
                         process_set: ProcessSet = ...,
                         scale_local_gradients: bool = ..., *,
                         sampler: Optional[elastic.ElasticSampler] = ...) -> Any: ...
def PartialDistributedGradientTape(gradtape: tf.GradientTape, device_dense: str = ...,
                                   device_sparse: str = ..., compression: Type[Compressor] = ...,
                                   sparse_as_dense: bool = ..., op: int = ...,
                                   gradient_predivide_factor: float = ..., num_groups: int = ...,
                                   groups: Union[None, int, Sequence[Any]] = ...,
                                   process_set: ProcessSet = ..., local_layers: Any = ...,
                                   scale_local_gradients: bool = ...) -> Any: ...
def PartialDistributedOptimizer(optimizer: Any, name: Optional[str] = ..., device_dense: str = ...,
                                device_sparse: str = ..., compression: Type[Compressor] = ...,
                                sparse_as_dense: bool = ..., gradient_predivide_factor: float = ...,
                                op: int = ..., num_groups: int = ...,
                                groups: Union[None, int, Sequence[Any]] = ...,
                                backward_passes_per_step: int = ...,
                                average_aggregated_gradients: bool = ...,
                                process_set: ProcessSet = ..., local_layers: Any = ...,
                                scale_local_gradients: bool = ...) -> Any: ...
def allgather(tensor: _Tensor, name: Optional[str] = ..., ignore_name_scope: bool = ...,
              process_set: ProcessSet = ...) -> tf.Tensor: ...
def allgather_object(obj: Any, session: Any = ..., name: Optional[str] = ...,
                     process_set: ProcessSet = ...) -> List[Any]: ...
def allreduce(tensor: _Tensor, average: Optional[bool] = ..., device_dense: str = ...,
              device_sparse: str = ..., compression: Type[Compressor] = ...,
              op: Optional[int] = ..., prescale_factor: float = ..., postscale_factor: float = ...,
              name: Optional[str] = ..., process_set: ProcessSet = ...,
              ignore_name_scope: bool = ...) -> _Tensor: ...
def alltoall(tensor: _Tensor, splits: Any = ..., name: Optional[str] = ...,
             ignore_name_scope: bool = ..., process_set: ProcessSet = ...) -> Any: ...
def broadcast(tensor: _Tensor, root_rank: int, name: Optional[str] = ...,
              ignore_name_scope: bool = ..., process_set: ProcessSet = ...) -> tf.Tensor: ...
def broadcast_(variables: Iterable[Any], root_rank: int, name: Optional[str] = ...,
               process_set: ProcessSet = ...) -> Any: ...
def broadcast_global_variables(root_rank: int) -> Any: ...
def broadcast_object(obj: Any, root_rank: int = ..., session: Any = ..., name: Optional[str] = ...,
                     process_set: ProcessSet = ...) -> Any: ...
def broadcast_object_fn(root_rank: int = ..., session: Any = ..., name: Optional[str] = ...,
                        process_set: ProcessSet = ...) -> Callable[..., Any]: ...
def broadcast_variables(variables: Iterable[Any], root_rank: int, process_set: ProcessSet = ...,
                        inplace: bool = ...) -> Any: ...
def grouped_allgather(tensors: Sequence[_Tensor], name: Optional[str] = ...,
                      ignore_name_scope: bool = ...,
                      process_set: ProcessSet = ...) -> List[tf.Tensor]: ...
def grouped_allreduce(tensors: Sequence[_Tensor], average: Optional[bool] = ...,
                      device_dense: str = ..., device_sparse: str = ...,
                      compression: Type[Compressor] = ..., op: Optional[int] = ...,
                      prescale_factor: float = ..., postscale_factor: float = ...,
                      process_set: ProcessSet = ..., ignore_name_scope: bool = ...,
                      name: Optional[str] = ...) -> List[Any]: ...
def grouped_reducescatter(tensors: Sequence[_Tensor], device_dense: str = ...,
                          compression: Type[Compressor] = ..., op: int = ...,
                          process_set: ProcessSet = ..., prescale_factor: float = ...,
                          postscale_factor: float = ..., name: Optional[str] = ...,
                          ignore_name_scope: bool = ...) -> List[tf.Tensor]: ...
def local_rank_op(name: Optional[str] = ...) -> tf.Tensor: ...
def local_size_op(name: Optional[str] = ...) -> tf.Tensor: ...
def process_set_included_op(process_set_id: int = ..., name: Optional[str] = ...) -> tf.Tensor: ...
def rank_op(name: Optional[str] = ...) -> tf.Tensor: ...
def reducescatter(tensor: _Tensor, device_dense: str = ..., compression: Type[Compressor] = ...,
                  op: int = ..., name: Optional[str] = ..., process_set: ProcessSet = ...,
                  ignore_name_scope: bool = ..., prescale_factor: float = ...,
                  postscale_factor: float = ...) -> tf.Tensor: ...
def size_op(process_set_id: int = ..., name: Optional[str] = ...) -> tf.Tensor: ...
