"""Horovod's class of the functions that say where a process stands."""

import ringmaster

__all__ = ["HorovodBasics"]


class HorovodBasics:
    """Each method is ringmaster's function of this name. The arguments are Horovod's; nothing is
    loaded.
    """

    def __init__(self, *_args, **_kwargs):
        pass


for _name in ("ccl_built", "cross_rank", "cross_size", "cuda_built", "ddl_built", "gloo_built",
              "gloo_enabled", "init", "is_homogeneous", "is_initialized", "local_rank",
              "local_size", "mpi_built", "mpi_enabled", "mpi_threads_supported", "nccl_built",
              "rank", "rocm_built", "shutdown", "size", "start_timeline", "stop_timeline"):
    setattr(HorovodBasics, _name, staticmethod(getattr(ringmaster, _name)))
