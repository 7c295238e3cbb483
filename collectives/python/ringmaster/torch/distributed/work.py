"""Work: what torch.distributed has of an operation in flight."""

import collections
import queue
import sys
import threading

import torch
from torch._C._distributed_c10d import Work as _TorchWork


class Work(_TorchWork):
    """Waits for a handle of ringmaster.torch, once, from any thread.

    `finish` gets the handle's result and puts it into `tensors`, which are the Work's result.
    """

    def __init__(self, handle, tensors, finish=None):
        super().__init__()
        self._handle = handle
        self._tensors = tensors
        self._finish = finish
        self._lock = threading.Lock()
        self._error = None
        self._future = None

    def wait(self, timeout=None):
        """True when the result is there; raises the operation's error. `timeout` is not looked at:
        the job's own deadlines end every wait.
        """
        del timeout
        with self._lock:
            if self._handle is not None:
                self._complete()
        if self._error is not None:
            raise self._error
        return True

    def _complete(self):
        try:
            result = self._handle.wait()
            if self._finish is not None:
                self._finish(result)
        except KeyboardInterrupt:  # the operation goes on: it can be waited for again
            raise
        except BaseException as error:  # Left, say, is a SystemExit
            self._error = error
        self._handle = self._finish = None

    def was_waited_for(self):
        return self._handle is None

    def forget(self):
        """Nobody asks for the result any more."""
        self._tensors = self._future = None

    def synchronize(self):
        self.wait()

    def is_completed(self):
        """Whether wait() would return at once."""
        handle = self._handle
        return handle is None or handle.done()

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        """What the operation has failed with; None if it hasn't, or is not done."""
        if self._handle is not None and self.is_completed():
            try:
                self.wait()
            except Exception:
                pass
        return self._error

    def result(self):
        """The list of tensors with the result."""
        self.wait()
        return list(self._tensors)

    def get_future(self):
        """A torch.futures.Future of result(). Another thread completes it."""
        with self._lock:
            if self._future is None:
                self._future = torch.futures.Future()
                _Completer.complete(self)
            return self._future

    def fulfil(self):
        try:
            self.wait()
        except BaseException as error:
            text = "%s: %s" % (type(error).__name__, error)
            self._future.set_exception(
                error if isinstance(error, Exception) else RuntimeError(text))
        else:
            self._future.set_result(list(self._tensors))


# Works of a group that C++ may still call, of which it does not keep the Python part alive.
KEPT_WORKS = 256


class KeptWorks:
    """The newest works of a group, and their tensors until the result was waited for and no script
    has the work: C++, whose references don't count, asks for a result at once or by a future.

    Any thread.
    """

    def __init__(self):
        self._works = collections.deque(maxlen=KEPT_WORKS)
        self._with_tensors = collections.deque(maxlen=KEPT_WORKS)
        self._lock = threading.Lock()

    def keep(self, work):
        with self._lock:
            for _ in range(len(self._with_tensors)):
                self._look_at_first()
            self._works.append(work)
            self._with_tensors.append(work)
        return work

    def _look_at_first(self):
        works = self._with_tensors
        if works[0].was_waited_for() and _references_to_first(works) <= _OF_TWO_DEQUES:
            works.popleft().forget()
        else:
            works.rotate(-1)


def _references_to_first(works):
    return sys.getrefcount(works[0])


def _count_of_two_deques():
    works = collections.deque([Work(None, [])])
    also = collections.deque(works)
    return _references_to_first(works) if also else 0


_OF_TWO_DEQUES = _count_of_two_deques()


class _Completer:
    """Threads of the process that wait for works whose future somebody has, each in their order.

    The first one is for what scripts ask for. A callback of a future, which runs in it, may ask for
    another work and wait for its future (PyTorch's PowerSGD does): the second one is for those that
    the first one's callbacks ask for, and so on.
    """

    _works = []  # queues, one for each thread
    _starting = threading.Lock()
    _here = threading.local()

    @classmethod
    def complete(cls, work):
        number = getattr(cls._here, "number", -1) + 1
        with cls._starting:
            if number == len(cls._works):
                cls._works.append(queue.SimpleQueue())
                threading.Thread(target=cls._run, args=(number,), name="ringmaster-futures",
                                 daemon=True).start()
        cls._works[number].put(work)

    @classmethod
    def _run(cls, number):
        cls._here.number = number
        while True:
            cls._works[number].get().fulfil()
