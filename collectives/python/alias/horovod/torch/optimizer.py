"""Horovod's name for ringmaster.torch.optimizer."""

from ringmaster.torch.optimizer import *  # noqa: F401, F403
from ringmaster.torch.optimizer import __all__
