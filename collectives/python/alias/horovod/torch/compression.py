"""Horovod's name for ringmaster.torch.compression."""

from ringmaster.torch.compression import *  # noqa: F401, F403
from ringmaster.torch.compression import __all__
