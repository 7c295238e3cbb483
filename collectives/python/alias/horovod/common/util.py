"""Horovod's name for what scripts ask about the installation."""

import contextlib
import os

from ringmaster import queries

__all__ = ["ccl_built", "check_extension", "cuda_built", "ddl_built", "env", "extension_available",
           "gloo_built", "gpu_available", "is_iterable", "mpi_built", "nccl_built",
           "num_rank_is_power_2", "rocm_built", "split_list"]

_FRAMEWORKS = ("keras", "tensorflow", "torch")


def _as_here(function):
    """With Horovod's argument here, where its functions look for themselves and can say how."""

    def built(verbose=False):
        del verbose
        return function()

    built.__name__, built.__doc__ = function.__name__, function.__doc__
    return built


ccl_built = _as_here(queries.ccl_built)
cuda_built = _as_here(queries.cuda_built)
ddl_built = _as_here(queries.ddl_built)
gloo_built = _as_here(queries.gloo_built)
mpi_built = _as_here(queries.mpi_built)
nccl_built = _as_here(queries.nccl_built)
rocm_built = _as_here(queries.rocm_built)


def extension_available(ext_base_name, verbose=False):
    """Whether this framework is supported: "torch", "tensorflow" and "keras" are."""
    del verbose
    return ext_base_name in _FRAMEWORKS


def check_extension(ext_name, *_args, **_kwargs):
    """ImportError unless this framework, such as "horovod.torch", is supported."""
    if not extension_available(ext_name.rpartition(".")[2]):
        raise ImportError("%s: is not there, allowed is %s"
                          % (ext_name, ", ".join("horovod." + name for name in _FRAMEWORKS)))


def gpu_available(ext_base_name, verbose=False):
    """Whether tensors of this framework on a GPU are reduced there: "torch", where cuda_built()."""
    del verbose
    return ext_base_name == "torch" and queries.cuda_built()


def num_rank_is_power_2(num_rank):
    """Whether a number of ranks is 1, 2, 4, 8, ... Here Adasum takes any number."""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def split_list(l, n):  # noqa: E741: the argument's name is Horovod's
    """`l` in `n` parts of the same length, the first ones one longer, as lists."""
    base, more = divmod(len(l), n)
    ends = [number * base + min(number, more) for number in range(n + 1)]
    return [l[begin:end] for begin, end in zip(ends, ends[1:])]


def is_iterable(x):
    """Whether iter(x) is possible."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


@contextlib.contextmanager
def env(**kwargs):
    """In its block the environment has these variables, too. One that is None stays as it is."""
    changed = {name: value for name, value in kwargs.items() if value is not None}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
