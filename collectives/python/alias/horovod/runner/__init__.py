"""Horovod's name for launching from Python: ringmaster.runner."""

from ringmaster.runner import HorovodRunner, log_to_driver, run

__all__ = ["HorovodRunner", "log_to_driver", "run"]
