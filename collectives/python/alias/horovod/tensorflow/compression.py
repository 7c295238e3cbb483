"""Horovod's name for ringmaster.tensorflow.compression."""

from ringmaster.tensorflow.compression import *  # noqa: F401, F403
from ringmaster.tensorflow.compression import __all__
