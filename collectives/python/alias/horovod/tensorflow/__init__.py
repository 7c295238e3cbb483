"""Horovod's name for ringmaster.tensorflow."""

from ringmaster.tensorflow import *  # noqa: F401, F403
from ringmaster.tensorflow import __all__
# Scripts that import horovod.tensorflow alone say hvd.mpi_ops.Sum and such.
from horovod.tensorflow import compression, functions, mpi_ops, sync_batch_norm  # noqa: F401
