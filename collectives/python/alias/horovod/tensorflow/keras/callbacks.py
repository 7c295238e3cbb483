"""Horovod's name for ringmaster.keras.callbacks."""

from ringmaster.keras.callbacks import *  # noqa: F401, F403
from ringmaster.keras.callbacks import __all__
