"""Sends and receives between two ranks: which worker is meant, and which call of the one belongs to
which call of the other. Any thread.

Both ends count their transfers by sender, receiver, tag and `space`, from the first to the last of
the two workers' lives, or to their shutdown(). So calls belong together in their order, also where
one of them is in a later step than the other.
"""

import threading

from ringmaster import _core, _in_flight, _library
from ringmaster.process_sets import global_process_set
from ringmaster.torch.tensors import check_writable, dtype_of, packed, put_back, request

# After so many the first name comes again. So many may be under way in one direction with one tag.
NAMES = 120
MANY = 1024

_lock = threading.Lock()
_counts = {}  # by (space, sender, receiver, tag)
_newest = {}  # operations under way: by the same and the number of the name


@_core.on_shutdown
def _count_anew():
    """Of what a shutdown() has made void one end may have called more than the other."""
    with _lock:
        _counts.clear()
        _newest.clear()


def worker_of(rank, field="rank"):
    """The worker that had this rank of the world when the step began. Another one than this."""
    workers = _core.step_workers()
    me = _core.step_view().rank
    if not 0 <= rank < len(workers) or rank == me:
        raise ValueError("%s: is %r, must be 0 to %d, and not %d, which is this rank itself"
                         % (field, rank, len(workers) - 1, me))
    return workers[rank]


def start_send(tensor, receiver, tag, process_set=global_process_set, space=""):
    """To a worker as worker_of() names it. The result is `tensor`.

    `space`: transfers of others are counted apart.
    """
    dtype = dtype_of(tensor)
    source = packed(tensor).reshape(-1)
    wanted = request(_library.SEND, b"", source, dtype, process_set, root=receiver.encode())
    key = (space, _core.own_worker(), receiver, int(tag))
    return _in_flight.Handle(_start(key, wanted, source), lambda _: tensor)


def start_recv(tensor, sender, tag, process_set=global_process_set, space=""):
    """Into `tensor`, which is the result."""
    dtype = dtype_of(tensor)
    check_writable(tensor)
    data = packed(tensor)
    wanted = request(_library.RECEIVE, b"", data.reshape(-1), dtype, process_set,
                     output=data.data_ptr(), root=sender.encode())
    key = (space, sender, _core.own_worker(), int(tag))
    return _in_flight.Handle(_start(key, wanted, data), lambda _: put_back(data, tensor))


def _start(key, wanted, buffer):
    while True:
        with _lock:
            count = _counts.get(key, 0)
            slot = (key, count % NAMES)
            before = _newest.get(slot)
            if before is None or before.done():
                wanted.name = ("%ssend.tag%d.%d" % (key[0], key[3], slot[1])).encode()
                operation = _in_flight.submit(wanted, buffer)
                # What is refused is not counted: the other end knows nothing of it.
                _counts[key] = count + 1
                _newest[slot] = operation
                if len(_newest) % MANY == 0:
                    for done in [slot for slot in _newest if _newest[slot].done()]:
                        del _newest[done]
                return operation
        before.until_done()
