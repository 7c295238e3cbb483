"""Horovod's name for ringmaster.keras.elastic."""

from ringmaster.keras.elastic import *  # noqa: F401, F403
from ringmaster.keras.elastic import __all__
