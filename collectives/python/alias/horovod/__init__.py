"""Horovod's module names for Ringmaster: scripts that say `import horovod.torch as hvd` run
unchanged.

Nothing is implemented here. Each module is another name of one of `ringmaster`'s; docs/python.md
says what differs. Where Horovod itself is installed this package refuses to be imported: of two
packages with one name a script would get now the one, now the other.
"""

from importlib import metadata as _metadata


def _refuse_beside_horovod():
    try:
        version = _metadata.version("horovod")
    except _metadata.PackageNotFoundError:
        return
    raise ImportError(
        "Horovod %s is installed here, and Ringmaster's package of the same name (%s) stands "
        "before it. Keep one of them: `pip uninstall horovod` lets the script run on Ringmaster, "
        "or write `import ringmaster.torch as hvd` in it; to go back to Horovod, `pip uninstall "
        "ringmaster-horovod`, or take Ringmaster's folder off PYTHONPATH" % (version, __path__[0]))


_refuse_beside_horovod()

from ringmaster import __version__ as _ringmaster_version  # noqa: E402
from horovod.runner import run  # noqa: E402

# The version of Horovod whose API this is, for scripts that compare it.
__version__ = "0.28.1+ringmaster." + _ringmaster_version

__all__ = ["run"]
