"""Horovod's name for ringmaster.torch."""

from ringmaster.torch import *  # noqa: F401, F403
from ringmaster.torch import __all__
