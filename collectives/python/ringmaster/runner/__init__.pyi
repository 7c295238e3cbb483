from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

T = TypeVar("T")

class LaunchError(RuntimeError): ...

class RankError(LaunchError):
    rank: int
    host: str
    traceback: str
    def __init__(self, rank: int, traceback: str, host: str = ...) -> None: ...

class FunctionError(LaunchError, ValueError): ...

class HorovodRunner:
    def __init__(self, np: int, driver_log_verbosity: str = ..., *, image: Optional[str] = ...,
                 namespace: Optional[str] = ..., kubeconfig: Optional[str] = ...,
                 context: Optional[str] = ..., slots: int = ..., min_np: Optional[int] = ...,
                 python: str = ..., resources: Optional[Mapping[str, Any]] = ...,
                 env: Optional[Mapping[str, Any]] = ..., pod: Optional[Mapping[str, Any]] = ...,
                 container: Optional[Mapping[str, Any]] = ...,
                 timeout: Optional[float] = ...) -> None: ...
    def run(self, main: Callable[..., T], **kwargs: Any) -> T: ...

def run(func: Callable[..., T], args: Sequence[Any] = ...,
        kwargs: Optional[Mapping[str, Any]] = ..., num_proc: int = ...,
        min_num_proc: Optional[int] = ..., max_num_proc: Optional[int] = ...,
        slots: Optional[int] = ..., reset_limit: Optional[int] = ...,
        cooldown_range: Optional[Tuple[int, int]] = ..., hosts: Optional[str] = ...,
        hostfile: Optional[str] = ..., host_discovery_script: Optional[str] = ...,
        start_timeout: Optional[int] = ...,
        ssh_port: Optional[int] = ..., ssh_identity_file: Optional[str] = ...,
        disable_cache: Optional[bool] = ..., output_filename: Optional[str] = ...,
        verbose: Union[None, bool, int] = ..., use_gloo: Optional[bool] = ...,
        use_mpi: Optional[bool] = ..., mpi_args: Optional[str] = ...,
        network_interface: Optional[str] = ...,
        network_interfaces: Optional[Iterable[str]] = ..., executable: Optional[str] = ...,
        np: Optional[int] = ..., min_np: Optional[int] = ..., max_np: Optional[int] = ..., *,
        env: Optional[Mapping[str, Any]] = ..., show_output: bool = ...) -> List[T]: ...
def log_to_driver(message: str) -> None: ...
