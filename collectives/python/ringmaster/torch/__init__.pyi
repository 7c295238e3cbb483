from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Type, Union

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

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
from ringmaster.sampler import ElasticSampler
from ringmaster.torch import elastic as elastic

Average: int
Sum: int
Min: int
Max: int
Product: int
Adasum: int

class Handle(int):
    def __int__(self) -> int: ...
    def __call__(self) -> Any: ...

class Compressor:
    @staticmethod
    def compress(tensor: Tensor) -> Tuple[Tensor, Any]: ...
    @staticmethod
    def decompress(tensor: Tensor, ctx: Any) -> Tensor: ...

class Compression:
    none: Type[Compressor]
    fp16: Type[Compressor]

class SyncBatchNorm(_BatchNorm): ...

def DistributedOptimizer(optimizer: torch.optim.Optimizer,
                         named_parameters: Optional[Iterable[Tuple[str, Tensor]]] = ...,
                         compression: Type[Compressor] = ..., backward_passes_per_step: int = ...,
                         op: int = ..., gradient_predivide_factor: float = ...,
                         num_groups: int = ...,
                         groups: Union[None, int, Sequence[Sequence[Tensor]]] = ...,
                         sparse_as_dense: bool = ..., process_set: ProcessSet = ..., *,
                         sampler: Optional[ElasticSampler] = ..., end_step: Optional[bool] = ...,
                         bucket_bytes: int = ...) -> Any: ...
def allgather(tensor: Tensor, name: Optional[str] = ...,
              process_set: ProcessSet = ...) -> Tensor: ...
def allgather_async(tensor: Tensor, name: Optional[str] = ...,
                    process_set: ProcessSet = ...) -> Handle: ...
def allgather_object(obj: Any, name: Optional[str] = ...,
                     process_set: ProcessSet = ...) -> List[Any]: ...
def allreduce(tensor: Tensor, average: Optional[bool] = ..., name: Optional[str] = ...,
              compression: Type[Compressor] = ..., op: Optional[int] = ...,
              prescale_factor: float = ..., postscale_factor: float = ...,
              process_set: ProcessSet = ...) -> Tensor: ...
def allreduce_(tensor: Tensor, average: Optional[bool] = ..., name: Optional[str] = ...,
               op: Optional[int] = ..., prescale_factor: float = ..., postscale_factor: float = ...,
               process_set: ProcessSet = ...) -> Tensor: ...
def allreduce_async(tensor: Tensor, average: Optional[bool] = ..., name: Optional[str] = ...,
                    op: Optional[int] = ..., prescale_factor: float = ...,
                    postscale_factor: float = ..., process_set: ProcessSet = ...) -> Handle: ...
def allreduce_async_(tensor: Tensor, average: Optional[bool] = ..., name: Optional[str] = ...,
                     op: Optional[int] = ..., prescale_factor: float = ...,
                     postscale_factor: float = ..., process_set: ProcessSet = ...) -> Handle: ...
def alltoall(tensor: Tensor, splits: Union[None, Sequence[int], Tensor] = ...,
             name: Optional[str] = ..., process_set: ProcessSet = ...) -> Any: ...
def alltoall_async(tensor: Tensor, splits: Union[None, Sequence[int], Tensor] = ...,
                   name: Optional[str] = ..., process_set: ProcessSet = ...) -> Handle: ...
def barrier(process_set: ProcessSet = ...) -> None: ...
def broadcast(tensor: Tensor, root_rank: int, name: Optional[str] = ...,
              process_set: ProcessSet = ...) -> Tensor: ...
def broadcast_(tensor: Tensor, root_rank: int, name: Optional[str] = ...,
               process_set: ProcessSet = ...) -> Tensor: ...
def broadcast_async(tensor: Tensor, root_rank: int, name: Optional[str] = ...,
                    process_set: ProcessSet = ...) -> Handle: ...
def broadcast_async_(tensor: Tensor, root_rank: int, name: Optional[str] = ...,
                     process_set: ProcessSet = ...) -> Handle: ...
def broadcast_object(obj: Any, root_rank: int = ..., name: Optional[str] = ...,
                     process_set: ProcessSet = ...) -> Any: ...
def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = ...,
                              model: Optional[torch.nn.Module] = ...,
                              process_set: ProcessSet = ...) -> None: ...
def broadcast_parameters(
                         params: Union[Mapping[str, Any], Iterable[Tuple[str, Tensor]], Iterable[Tensor]],
                         root_rank: int = ..., process_set: ProcessSet = ...) -> None: ...
def grouped_allgather(tensors: Sequence[Tensor], name: Optional[str] = ...,
                      process_set: ProcessSet = ...) -> List[Tensor]: ...
def grouped_allgather_async(tensors: Sequence[Tensor], name: Optional[str] = ...,
                            process_set: ProcessSet = ...) -> Handle: ...
def grouped_allreduce(tensors: Sequence[Tensor], average: Optional[bool] = ...,
                      name: Optional[str] = ..., compression: Type[Compressor] = ...,
                      op: Optional[int] = ..., prescale_factor: float = ...,
                      postscale_factor: float = ...,
                      process_set: ProcessSet = ...) -> List[Tensor]: ...
def grouped_allreduce_(tensors: Sequence[Tensor], average: Optional[bool] = ...,
                       name: Optional[str] = ..., op: Optional[int] = ...,
                       prescale_factor: float = ..., postscale_factor: float = ...,
                       process_set: ProcessSet = ...) -> List[Tensor]: ...
def grouped_allreduce_async(tensors: Sequence[Tensor], average: Optional[bool] = ...,
                            name: Optional[str] = ..., op: Optional[int] = ...,
                            prescale_factor: float = ..., postscale_factor: float = ...,
                            process_set: ProcessSet = ...) -> Handle: ...
def grouped_allreduce_async_(tensors: Sequence[Tensor], average: Optional[bool] = ...,
                             name: Optional[str] = ..., op: Optional[int] = ...,
                             prescale_factor: float = ..., postscale_factor: float = ...,
                             process_set: ProcessSet = ...) -> Handle: ...
def grouped_reducescatter(tensors: Sequence[Tensor], name: Optional[str] = ...,
                          compression: Type[Compressor] = ..., op: int = ...,
                          process_set: ProcessSet = ..., prescale_factor: float = ...,
                          postscale_factor: float = ...) -> List[Tensor]: ...
def grouped_reducescatter_async(tensors: Sequence[Tensor], name: Optional[str] = ..., op: int = ...,
                                process_set: ProcessSet = ..., prescale_factor: float = ...,
                                postscale_factor: float = ...) -> Handle: ...
def join(device: int = ...) -> int: ...
def poll(handle: int) -> bool: ...
def recv(tensor: Tensor, rank: int, tag: int = ..., process_set: ProcessSet = ...) -> Tensor: ...
def recv_async(tensor: Tensor, rank: int, tag: int = ...,
               process_set: ProcessSet = ...) -> Handle: ...
def reducescatter(tensor: Tensor, name: Optional[str] = ..., compression: Type[Compressor] = ...,
                  op: int = ..., process_set: ProcessSet = ..., prescale_factor: float = ...,
                  postscale_factor: float = ...) -> Tensor: ...
def reducescatter_async(tensor: Tensor, name: Optional[str] = ..., op: int = ...,
                        process_set: ProcessSet = ..., prescale_factor: float = ...,
                        postscale_factor: float = ...) -> Handle: ...
def send(tensor: Tensor, rank: int, tag: int = ..., process_set: ProcessSet = ...) -> Tensor: ...
def send_async(tensor: Tensor, rank: int, tag: int = ...,
               process_set: ProcessSet = ...) -> Handle: ...
def sparse_allreduce_async(tensor: Tensor, name: Optional[str] = ..., op: Optional[int] = ...,
                           process_set: ProcessSet = ...) -> Handle: ...
def synchronize(handle: int) -> Any: ...
