"""Horovod's name for launching. A job is launched by `ringmaster run` or a HorovodJob."""

__all__ = ["run"]


def run(func, *_args, **_kwargs):
    """Horovod's run(func, np=...): not there. Raises NotImplementedError that names the way to go
    instead.
    """
    raise NotImplementedError(
        "horovod.run(%s): launching from Python is not there; put the call into a script and "
        "launch it with `ringmaster run -np N python3 SCRIPT`, or as a HorovodJob" %
        getattr(func, "__name__", func))
