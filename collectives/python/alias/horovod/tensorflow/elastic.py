"""Horovod's name for ringmaster.tensorflow.elastic."""

from ringmaster.tensorflow.elastic import *  # noqa: F401, F403
from ringmaster.tensorflow.elastic import __all__
