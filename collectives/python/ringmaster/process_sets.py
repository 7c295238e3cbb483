"""Process sets: collectives of some of the workers, as in Horovod.

A set is made of the workers that have its ranks when it is added. Who dies or leaves is in it no
more, and who joins the job later is in none: add another set when the world has changed.
"""

import weakref
from ctypes import byref, c_int, c_size_t

from ringmaster import _core, _in_flight


_added = weakref.WeakSet()


class ProcessSet:
    """Some ranks. It can be used once it was given to init() or add_process_set()."""

    def __init__(self, ranks):
        self._wanted = None if ranks is None else sorted(int(rank) for rank in ranks)
        self.process_set_id = 0 if ranks is None else None

    @property
    def ranks(self):
        """Of its members that are in the world now."""
        if self.process_set_id is None:
            return list(self._wanted)
        found = (c_int * _core.size())()
        count = c_size_t()
        _core.call("rm_process_set_ranks", self.process_set_id, found, len(found), byref(count))
        return list(found[:count.value])

    def size(self):
        """How many workers are in it now; None before it was added."""
        return None if self.process_set_id is None else len(self.ranks)

    def included(self):
        """Whether this worker is in it; None before it was added."""
        return None if self.process_set_id is None else _core.rank() in self.ranks

    def rank(self):
        """This worker's place in the set; -1 if it isn't in it, None before it was added."""
        if self.process_set_id is None:
            return None
        ranks = self.ranks
        return ranks.index(_core.rank()) if _core.rank() in ranks else -1

    def number(self):
        """What the library calls it."""
        if self.process_set_id is None:
            raise ValueError("process_set: %r was not added, or has been removed" % self)
        return self.process_set_id

    def __repr__(self):
        return "ProcessSet(%s)" % (self._wanted if self._wanted is not None else "all")


global_process_set = ProcessSet(None)


def init(comm=None, process_sets=None, *, timeout=_core.DEFAULT_TIMEOUT):
    """Connects to the sidecar, as _core.init() says, and adds `process_sets`, in their order.

    `comm` is Horovod's, a list of ranks or an MPI communicator: there are none here, so it is to be
    None. `process_sets`: ProcessSets or lists of ranks; "dynamic", as Horovod has it, is the same
    as none, because sets can always be added. `timeout`: seconds, a float.
    """
    if comm is not None:
        raise ValueError("comm: is %r, allowed is None: a process set can have some of the ranks"
                         % (comm,))
    if isinstance(process_sets, str) and process_sets != "dynamic":
        raise ValueError("process_sets: is %r, allowed are \"dynamic\" and a list" % process_sets)
    if isinstance(process_sets, str):
        process_sets = None
    again = _core.is_initialized()
    _core.init(timeout)
    for process_set in () if again else process_sets or ():
        add_process_set(process_set)


def add_process_set(process_set):
    """Adds a ProcessSet, or one of a list of ranks, and returns it.

    All ranks must call it with the same. A joiner that has not entered yet agrees with nobody: it
    knows the sets that the others have added in the same place of the script, and is in none.
    """
    if not isinstance(process_set, ProcessSet):
        process_set = ProcessSet(process_set)
    if process_set.process_set_id is not None:
        raise ValueError("process_set: %r was added already" % process_set)
    ranks = process_set._wanted
    number = c_int()
    operation = _in_flight.start("rm_process_set_add_async", (c_int * max(1, len(ranks)))(*ranks),
                                 len(ranks))
    _in_flight.Handle(operation, lambda done: _core.call("rm_process_set_number", done.number,
                                                         byref(number))).wait()
    process_set.process_set_id = number.value
    _added.add(process_set)
    return process_set


def remove_process_set(process_set):
    """All ranks must call it. What is in flight in the set fails. False: there was none to remove.
    """
    if not process_set.process_set_id:
        return False
    operation = _in_flight.start("rm_process_set_remove_async", process_set.process_set_id)
    _in_flight.Handle(operation, lambda _: None).wait()
    _forget(process_set)
    return True


def _forget(process_set):
    process_set.process_set_id = None
    _added.discard(process_set)


@_core.on_shutdown
def _forget_all():
    """They can be added again after the next init()."""
    for process_set in list(_added):
        _forget(process_set)
