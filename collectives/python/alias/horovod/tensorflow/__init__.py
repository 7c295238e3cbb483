"""Horovod's name for ringmaster.tensorflow."""

from ringmaster.tensorflow import *  # noqa: F401, F403
from ringmaster.tensorflow import __all__
