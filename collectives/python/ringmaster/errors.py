"""What the library's status codes become in Python. The only place that maps one to the other."""

(OK, INVALID, MISMATCH, EPOCH_MOVED, LEFT, TIMEOUT, UNAVAILABLE, SHUTDOWN, NO_STATE,
 INTERNAL, ROOT_LOST, DROPPED, OUT_OF_MEMORY, FORKED) = range(14)

_NAMES = ("RM_OK", "RM_ERR_INVALID", "RM_ERR_MISMATCH", "RM_ERR_EPOCH_MOVED", "RM_ERR_LEFT",
          "RM_ERR_TIMEOUT", "RM_ERR_UNAVAILABLE", "RM_ERR_SHUTDOWN", "RM_ERR_NO_STATE",
          "RM_ERR_INTERNAL", "RM_ERR_ROOT_LOST", "RM_ERR_DROPPED", "RM_ERR_OUT_OF_MEMORY",
          "RM_ERR_FORKED")

# RM_EXIT_DROPPED: the process is started again, and no failure is counted.
EXIT_DROPPED = 79


class HorovodInternalError(RuntimeError):
    """A collective failed, on every rank with the same words. `code` is the library's status."""

    def __init__(self, message="", code=INTERNAL):
        super().__init__(message)
        self.code = code


class RootLostError(HorovodInternalError):
    """The worker whose data was to be broadcast has died or left; no other one takes its place."""


class WorkerDroppedError(HorovodInternalError, SystemExit):
    """The others go on without this worker, which was silent for too long: what it holds counts for
    nothing. `elastic.run` waits until it is let in again. Elsewhere it ends the process, which is
    started again without counting as a failure: hence a SystemExit, whose `code` is the exit code.
    """

    def __init__(self, message=""):
        super().__init__(message, EXIT_DROPPED)


class HostsUpdatedInterrupt(RuntimeError):
    """The world has changed. `elastic.run` catches it and enters the training function again."""
    within_step = False  # whether all ranks raise it elsewhere than at the end of a step

    def __init__(self, skip_sync=False):
        super().__init__("the world has changed")
        self.skip_sync = skip_sync


class Left(SystemExit):
    """This worker has left the job by plan (drain, scale-down): the process ends with exit code 0.
    """

    def __init__(self, message=""):
        super().__init__(0)
        self.message = message

    def __str__(self):
        return self.message


def check(status, library):
    """Raises what belongs to `status`; the words are the library's own."""
    if status == OK:
        return
    text = (library.rm_last_error() or b"").decode("utf-8", "replace")
    name = _NAMES[status] if 0 <= status < len(_NAMES) else "status %d" % status
    text = text or name
    if status == INVALID:
        raise ValueError(text)
    if status == LEFT:
        raise Left(text)
    if status == DROPPED:
        raise WorkerDroppedError(text)
    kind = RootLostError if status == ROOT_LOST else HorovodInternalError
    raise kind("%s (%s)" % (text, name), status)


class CallbackError:
    """Keeps an exception raised inside a C callback, so that the call that led to it can raise it.
    """

    def __init__(self):
        self._kept = None

    def guard(self, function):
        """`function` as a C callback: 0 when it returned, 1 when it raised (which is kept)."""

        def guarded(*args):
            try:
                function(*args)
                return 0
            except BaseException as error:  # nothing may pass through the C frames
                self._kept = error
                return 1

        return guarded

    def raise_kept(self):
        kept, self._kept = self._kept, None
        if kept is not None:
            raise kept

