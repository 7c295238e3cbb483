"""Process sets: collectives of some of the workers, as in Horovod.

A set is made of the workers that had its ranks when the step began in which it is added. Who dies
or leaves is in it no more, and who joins the job later is in none: add another set when the world
has changed.
"""

import operator
import weakref
from ctypes import byref, c_int, c_size_t

from ringmaster import _core, _in_flight


_added = weakref.WeakSet()


class ProcessSet:
    """Some ranks. It can be used once it was given to init() or add_process_set(). ValueError:
    `ranks` are no integers.
    """

    def __init__(self, ranks):
        try:
            self._wanted = sorted(operator.index(rank) for rank in ranks)
        except TypeError:
            raise ValueError("ranks: is %r, must be a list of ranks" % (ranks,)) from None
        self.process_set_id = None

    @classmethod
    def of_all(cls):
        """One of all ranks, whoever they are."""
        made = cls(())
        made._wanted, made.process_set_id = None, 0
        return made

    @property
    def ranks(self):
        """Of its members that are in the world now; of all ranks before init(): none."""
        if self.process_set_id is None:
            return list(self._wanted)
        if not _core.is_initialized():
            return []
        found = (c_int * _core.size())()
        count = c_size_t()
        _core.call("rm_process_set_ranks", self.process_set_id, found, len(found), byref(count))
        return list(found[:count.value])

    def size(self):
        """How many workers are in it now; None before it was added."""
        if self.process_set_id is None:
            return None
        _core.size()  # ValueError before init()
        return len(self.ranks)

    def size_when_added(self):
        """With how many workers it was added, the same on all ranks; None of all ranks."""
        return None if self._wanted is None else len(self._wanted)

    def ranks_when_added(self):
        """Its ranks as it was added, ascending; None of all ranks."""
        return None if self._wanted is None else list(self._wanted)

    def included(self):
        """Whether this worker is in it; None before it was added."""
        if self.process_set_id is None:
            return None
        ranks, own = self._now()
        return own in ranks

    def rank(self):
        """This worker's place in the set; -1 if it isn't in it, None before it was added."""
        if self.process_set_id is None:
            return None
        ranks, own = self._now()
        return ranks.index(own) if own in ranks else -1

    def _now(self):
        """(The set's ranks, this worker's rank of the world) of one moment."""
        while True:  # until nothing moved between the first look and the last
            before = _core.view().number
            ranks, own = self.ranks, _core.rank()
            if _core.view().number == before:
                return ranks, own

    def place_among(self, count):
        """This worker's place among the `count` members that have just taken part in an operation.

        None: nobody can tell, because the world has changed meanwhile.
        """
        if self._wanted is None:
            workers, me = _core.workers_of_calls(), _core.name_of(_core.SELF)
            if count == len(workers) and me in workers:  # all that the step began with
                return workers.index(me)
        ranks, own = self._now()
        return ranks.index(own) if count == len(ranks) and own in ranks else None

    def number(self):
        """What the library calls it."""
        if self.process_set_id is None:
            raise ValueError("process_set: %r was not added, or has been removed" % self)
        return self.process_set_id

    def __repr__(self):
        return "ProcessSet(%s)" % (self._wanted if self._wanted is not None else "all")


global_process_set = ProcessSet.of_all()


def _checker_of(comm):
    """A function that raises where `comm` does not name all ranks; to be called when they are
    known. What names no ranks at all is refused at once.
    """
    if comm is None:
        return lambda: None
    if hasattr(comm, "Get_size") and hasattr(comm, "Get_rank"):
        try:
            place = comm.Get_rank(), comm.Get_size()
        except Exception as error:  # mpi4py's own, of MPI.COMM_NULL say
            _refuse(comm, "an MPI communicator without ranks (%s)" % error)
        return lambda: _check_communicator(comm, *place)
    try:
        ranks = [operator.index(rank) for rank in comm]
    except TypeError:
        _refuse(comm, "neither a list of ranks nor one communicator")
    return lambda: _check_ranks(comm, ranks)


def _check_communicator(comm, rank, size):
    if _core.is_joining():  # its ranks are those of a start that the others have left behind
        return
    view = _core.view()
    if (rank, size) != (view.rank, view.size):
        _refuse(comm, "an MPI communicator in which this is rank %d of %d, and in the job it is "
                "rank %d of %d" % (rank, size, view.rank, view.size))


def _check_ranks(comm, ranks):
    if ranks and not _core.is_joining() and ranks != list(range(_core.size())):
        _refuse(comm, "not the list of all ranks of the job, 0 to %d" % (_core.size() - 1))


def _refuse(comm, why):
    raise ValueError("comm: is %r, %s. Allowed are None, a list of all ranks in their order and an "
                     "MPI communicator of all ranks: for some of them give process_sets= lists of "
                     "ranks" % (comm, why))


def init(comm=None, process_sets=None, *, timeout=None):
    """Connects to the sidecar, as _core.init() says, and adds `process_sets`, in their order.

    `comm` is Horovod's: None, a list of ranks (an empty one means all), or a communicator of
    mpi4py. The world is the job's, so it has to name all ranks in their order: a ValueError if it
    does not, where that takes the world's size after connecting. `process_sets`: ProcessSets or
    lists of ranks; "dynamic", as Horovod has it, is the same as none, because sets can always be
    added. `timeout`: seconds, a float.
    """
    names_all = _checker_of(comm)
    if isinstance(process_sets, str) and process_sets != "dynamic":
        raise ValueError("process_sets: is %r, allowed are \"dynamic\" and a list" % process_sets)
    if isinstance(process_sets, str):
        process_sets = None
    again = _core.is_initialized()
    _core.init(timeout)
    if not again:
        names_all()
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
