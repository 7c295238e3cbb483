"""What launching raises."""


class LaunchError(RuntimeError):
    """The job could not be started, or ended without what was asked for. The message says why."""


class ProgramMissing(LaunchError):
    """The program `ringmaster` is not where it is looked for."""


class RankError(LaunchError):
    """A rank's function raised. `rank` is its rank, `traceback` the text of its traceback, `host`
    the machine that it ran on; empty: this one.

    It is the `__cause__` of the exception that is raised again in the caller's process, and is
    raised itself where that exception could not be carried over.
    """

    def __init__(self, rank, traceback, host=""):
        where = " on %s" % host if host else ""
        super().__init__("rank %d%s raised:\n%s" % (rank, where, traceback.rstrip("\n")))
        self.rank = rank
        self.host = host
        self.traceback = traceback

    def __reduce__(self):
        return RankError, (self.rank, self.traceback, self.host)


class FunctionError(LaunchError, ValueError):
    """The function, its arguments or its value can't be sent: the message names what, and the way
    out.
    """
