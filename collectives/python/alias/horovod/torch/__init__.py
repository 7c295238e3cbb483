"""Horovod's name for ringmaster.torch."""

from ringmaster.torch import *  # noqa: F401, F403
from ringmaster.torch import __all__
# Scripts that import horovod.torch alone say hvd.mpi_ops.Sum, hvd.elastic.state.TorchState and such.
from horovod.torch import compression, functions, mpi_ops, optimizer, sync_batch_norm  # noqa: F401
from horovod.torch.elastic import sampler as _sampler, state as _state  # noqa: F401
