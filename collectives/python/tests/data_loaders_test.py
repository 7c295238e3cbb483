"""The loaders of horovod.data."""

import threading

import pytest
from horovod.data.data_loader_base import AsyncDataLoaderMixin, BaseDataLoader


class Loader(BaseDataLoader):

    def __init__(self, count, fails_at=None):
        self.count = count
        self.fails_at = fails_at
        self.passes = 0
        self.threads = set()

    def __len__(self):
        return self.count

    def _iterate(self):
        self.passes += 1
        for number in range(self.count):
            self.threads.add(threading.current_thread())
            if number == self.fails_at:
                raise OSError("unreadable")
            yield number

    def _process_batch(self, batch):
        assert threading.current_thread() is threading.main_thread()
        return 10 * batch


class Ahead(AsyncDataLoaderMixin, Loader):
    pass


@pytest.mark.parametrize("make", [lambda: Loader(5), lambda: Ahead(0, False, 5),
                                  lambda: Ahead(async_loader_queue_size=2, count=5),
                                  lambda: Ahead(count=5)])
def test_EachPassHasAllBatchesInOrder(make):
    loader = make()
    for number in range(3):
        assert list(loader) == [0, 10, 20, 30, 40]
        assert loader.passes == number + 1  # none is begun before it is asked for
    assert len(loader) == 5


def test_BatchesAreReadAheadInAThreadOfTheirOwn():
    loader = Ahead(async_loader_queue_size=2, count=5)
    begun = iter(loader)
    assert next(begun) == 0
    assert threading.main_thread() not in loader.threads
    assert list(begun) == [10, 20, 30, 40]


def test_ALoopThatWasLeftGoesOnWhereItWas():
    loader = Ahead(async_loader_queue_size=2, count=5)
    for batch in loader:
        if batch == 10:
            break
    assert list(loader) == [20, 30, 40] and list(loader) == [0, 10, 20, 30, 40]


def test_AnErrorComesBehindTheBatchesBeforeIt():
    loader = Ahead(count=5, fails_at=2)
    batches = iter(loader)
    assert [next(batches), next(batches)] == [0, 10]
    with pytest.raises(OSError, match="unreadable"):
        next(batches)
    loader.fails_at = None
    assert list(loader) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_WhatEndsTheReadingThreadEndsTheLoop(error):

    class Leaving(Ahead):

        def _iterate(self):
            yield 1
            raise error

    batches = iter(Leaving(count=2))
    assert next(batches) == 10
    with pytest.raises(type(error)):
        next(batches)


def test_ClosingEndsTheThreadAlsoWhereTheQueueIsFull():
    loader = Ahead(async_loader_queue_size=1, count=100)
    assert next(iter(loader)) == 0
    loader.close_async_loader()
    loader.close_async_loader()
    assert not any(thread.is_alive() for thread in loader.threads)
    assert len(list(loader)) == 100
