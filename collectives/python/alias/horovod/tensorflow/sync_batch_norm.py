"""Horovod's name for ringmaster.tensorflow.sync_batch_norm."""

from ringmaster.tensorflow.sync_batch_norm import *  # noqa: F401, F403
from ringmaster.tensorflow.sync_batch_norm import __all__
