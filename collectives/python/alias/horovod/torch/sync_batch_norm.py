"""Horovod's name for ringmaster.torch.sync_batch_norm."""

from ringmaster.torch.sync_batch_norm import *  # noqa: F401, F403
from ringmaster.torch.sync_batch_norm import __all__
