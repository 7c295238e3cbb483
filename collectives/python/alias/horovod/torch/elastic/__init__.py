"""Horovod's name for ringmaster.torch.elastic."""

from ringmaster.torch.elastic import *  # noqa: F401, F403
from ringmaster.torch.elastic import __all__
