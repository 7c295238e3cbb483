from typing import Any, List, Sequence, TypeVar

from ringmaster import (ccl_built as ccl_built, cuda_built as cuda_built, ddl_built as ddl_built,
                        gloo_built as gloo_built, mpi_built as mpi_built, nccl_built as nccl_built,
                        rocm_built as rocm_built)

T = TypeVar("T")

def extension_available(ext_base_name: str, verbose: bool = ...) -> bool: ...
def check_extension(ext_name: str, *_args: Any, **_kwargs: Any) -> None: ...
def split_list(l: Sequence[T], n: int) -> List[Sequence[T]]: ...
