"""Horovod's name for ringmaster.tensorflow.functions."""

from ringmaster.tensorflow.functions import *  # noqa: F401, F403
from ringmaster.tensorflow.functions import __all__
