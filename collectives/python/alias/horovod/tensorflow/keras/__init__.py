"""Horovod's name for ringmaster.keras."""

from ringmaster.keras import *  # noqa: F401, F403
from ringmaster.keras import __all__
