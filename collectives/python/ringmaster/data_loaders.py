"""The base classes of horovod.data: a loader is a method that yields batches, and a mixin reads them
ahead in a thread.

The script's thread owns a loader; what the reading thread shares with it is in _Pass.
"""

import collections
import threading

__all__ = ["AsyncDataLoaderMixin", "BaseDataLoader"]


class BaseDataLoader:
    """Derive: `_iterate`, which yields the batches of one pass over the data, and `__len__`."""

    def __len__(self):
        """How many batches a pass has."""
        raise NotImplementedError()

    def _iterate(self):
        raise NotImplementedError()

    def _process_batch(self, batch):
        """What the training loop gets of a batch of _iterate(); called in its thread."""
        return batch

    def __iter__(self):
        for batch in self._iterate():
            yield self._process_batch(batch)


class AsyncDataLoaderMixin:
    """Reads up to `async_loader_queue_size` batches ahead, in a thread: put it before the loader's
    class, `class Ahead(AsyncDataLoaderMixin, Loader)`. With 0 nothing is read ahead.

    What _iterate() raises is raised to the loop, behind the batches before it. A loop that was left
    in the middle of a pass goes on there the next time. A pass begins when it is asked for; in
    Horovod the thread begins the next one at once, and an ElasticSampler would not know its epoch.
    `debug_data_loader` is not used.
    """

    def __init__(self, async_loader_queue_size=64, debug_data_loader=False, *args, **kwargs):
        self.async_loader_queue_size = async_loader_queue_size
        self.debug_data_loader = debug_data_loader
        self._pass = None
        super().__init__(*args, **kwargs)

    def close_async_loader(self):
        """Ends the thread, and drops what it has read ahead."""
        if self._pass is not None:
            self._pass.close()
            self._pass = None

    def __iter__(self):
        if self.async_loader_queue_size <= 0:
            yield from (self._process_batch(batch) for batch in self._iterate())
            return
        if self._pass is None:
            self._pass = _Pass(self._iterate, self.async_loader_queue_size)
        current = self._pass
        try:
            while current.has_more():
                yield self._process_batch(current.take())
        finally:
            if current.ended() and self._pass is current:
                self._pass = None


class _Pass:
    """One pass over the data, read by a thread of its own. `size`: of its queue, in batches."""

    def __init__(self, iterate, size):
        self._size = size
        self._changed = threading.Condition()
        self._batches = collections.deque()  # these four: guarded by _changed
        self._read_all = False
        self._error = None
        self._closed = False
        # A daemon: a script may end in the middle of a pass.
        self._thread = threading.Thread(target=self._read, args=(iterate,), daemon=True)
        self._thread.start()

    def has_more(self):
        """Waits until that is known. Raises what the reading has raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._read_all)
            if self._error is not None and not self._batches:
                raise self._error
            return bool(self._batches)

    def take(self):
        with self._changed:
            self._changed.notify_all()
            return self._batches.popleft()

    def ended(self):
        with self._changed:
            return self._read_all and not self._batches

    def close(self):
        """Waits for the batch that is being read."""
        with self._changed:
            self._closed = True
            self._batches.clear()
            self._changed.notify_all()
        self._thread.join()

    def _read(self, iterate):
        error = None
        try:
            for batch in iterate():
                if not self._put(batch):
                    break
        except BaseException as raised:  # also a SystemExit: the loop waits for the end
            error = raised
        with self._changed:
            self._error, self._read_all = error, True
            self._changed.notify_all()

    def _put(self, batch):
        """False: nobody wants it any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._batches) < self._size)
            if not self._closed:
                self._batches.append(batch)
                self._changed.notify_all()
            return not self._closed
