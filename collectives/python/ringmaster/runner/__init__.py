"""Launching from Python: run(), HorovodRunner, and the command horovodrun (python3 -m
ringmaster.runner).
"""

from ringmaster.runner.errors import FunctionError, LaunchError, RankError
from ringmaster.runner.horovod_runner import HorovodRunner
from ringmaster.runner.local import run
from ringmaster.runner.messages import log_to_driver

__all__ = ["FunctionError", "HorovodRunner", "LaunchError", "RankError", "log_to_driver", "run"]
