"""Horovod's name for launching from Python: ringmaster.runner."""

from ringmaster.runner import log_to_driver, run

__all__ = ["log_to_driver", "run"]
