"""What scripts ask about the installation. The names are Horovod's; the answers are about what such
a script wants to know.
"""

import os

from ringmaster import _core


def is_homogeneous():
    """True when every pod has the same number of workers: as many as it was given, or there is one
    pod. The same on all ranks.

    While a pod lacks a worker that has died it is False. ValueError before init().
    """
    if _core.cross_size() == 1:
        return True
    slots = int(os.environ.get("HOROVOD_LOCAL_SIZE", _core.local_size()))
    return _core.local_size() == slots and _core.size() == slots * _core.cross_size()


def gloo_built():
    """True: collectives on the CPU over TCP and shared memory are there, and they need no MPI."""
    return True


def gloo_enabled():
    """True, as gloo_built()."""
    return True


def mpi_built():
    """Whether there is an MPI by which collectives can go, under its launcher and with
    RINGMASTER_BACKEND=mpi.

    It is loaded for that, but not initialised. ImportError where the library itself is not there.
    """
    return bool(_core.library().rm_mpi_built())


def mpi_enabled():
    """Whether the collectives of this process go by MPI. False before init()."""
    return _core.library().rm_mpi_enabled() != 0


def mpi_threads_supported():
    """Whether the script may call MPI itself beside these collectives, from any thread of its own.

    True where mpirun or mpiexec has started it: the two never wait for each other. Where
    collectives go by MPI themselves, MPI has to allow calls of several threads at a time. False
    elsewhere, because MPI would know of this process alone. ValueError before init().
    """
    by_mpi = _core.library().rm_mpi_enabled()
    return _core.size() > 1 and not _core.has_sidecar() and by_mpi != 1


def nccl_built():
    """The version of NCCL that this process can use for tensors on GPUs, 22703 for 2.27.3; 0: none.

    Nothing is built with NCCL: it is looked for when this is called, or the first such tensor
    comes. Where it is 0, tensors on GPUs are refused, or go through the host's memory
    (docs/gpu.md). ImportError where the library itself is not there.
    """
    return _core.library().rm_nccl_version()


def ddl_built():
    """False: IBM's DDL is not used."""
    return False


def ccl_built():
    """False: Intel's oneCCL is not used."""
    return False


def cuda_built():
    """True where there is a GPU, CUDA's runtime and NCCL for tensors on GPUs: nccl_built()."""
    return nccl_built() != 0


def rocm_built():
    """False: GPUs are CUDA's."""
    return False
