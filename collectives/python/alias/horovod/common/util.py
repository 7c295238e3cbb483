"""Horovod's name for what scripts ask about the installation."""

from ringmaster.queries import (ccl_built, cuda_built, ddl_built, gloo_built, mpi_built, nccl_built,
                                rocm_built)

__all__ = ["ccl_built", "check_extension", "cuda_built", "ddl_built", "extension_available",
           "gloo_built", "mpi_built", "nccl_built", "rocm_built", "split_list"]

_FRAMEWORKS = ("keras", "tensorflow", "torch")


def extension_available(ext_base_name, verbose=False):
    """Whether this framework is supported: "torch", "tensorflow" and "keras" are."""
    del verbose
    return ext_base_name in _FRAMEWORKS


def check_extension(ext_name, *_args, **_kwargs):
    """ImportError unless this framework, such as "horovod.torch", is supported."""
    if not extension_available(ext_name.rpartition(".")[2]):
        raise ImportError("%s: is not there, allowed is %s"
                          % (ext_name, ", ".join("horovod." + name for name in _FRAMEWORKS)))


def split_list(l, n):  # noqa: E741: the argument's name is Horovod's
    """`l` in at most `n` parts of the same length, the first ones one longer, as lists."""
    base, more = divmod(len(l), n)
    ends = [number * base + min(number, more) for number in range(n + 1)]
    return [l[begin:end] for begin, end in zip(ends, ends[1:]) if end > begin]
