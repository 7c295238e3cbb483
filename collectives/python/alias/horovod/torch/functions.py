"""Horovod's name for ringmaster.torch.functions."""

from ringmaster.torch.functions import *  # noqa: F401, F403
from ringmaster.torch.functions import __all__
