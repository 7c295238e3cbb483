"""Horovod's name for the exceptions of ringmaster."""

from ringmaster.errors import HorovodInternalError, HostsUpdatedInterrupt

__all__ = ["HorovodInternalError", "HorovodVersionMismatchError", "HostsUpdatedInterrupt"]


class HorovodVersionMismatchError(ImportError):
    """Never raised: nothing here is compiled against a framework, so no version of one can be the
    wrong one.
    """
