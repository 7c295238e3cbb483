"""The worker's end of run() and HorovodRunner: calls the function that was sent, and tells what came
of it.
"""

import os
import pickle
import sys
import traceback

from ringmaster import _core
from ringmaster.runner import function

EXCEPTION_EXIT = 1  # exit status: no rule of a failure policy is about it, so the job fails


def call(packed, report):
    """Calls what function.pack() made. `report` gets value(rank, bytes) or failure(rank, bytes)."""
    try:
        called, args, kwargs = function.unpack(packed)
        value = called(*args, **kwargs)
        name = function.name_of(called)
        data = function.dump(value, "the value of %s" % name)
    except SystemExit:
        raise  # a worker that was drained or dropped, or a script's own wish
    except Exception as error:
        text = traceback.format_exc()
        print(text, end="", file=sys.stderr, flush=True)
        report.failure(place(), _dump_failure(error, text))
        sys.exit(EXCEPTION_EXIT)
    if _core._process != os.getpid():
        # The function uses no collectives. The end of the job is agreed by all workers all the same.
        _core.init()
    report.value(place(), data)


def place():
    """This worker's rank; where it has none, the number that it began with."""
    try:
        return _core.rank()
    except ValueError:
        return int(os.environ.get("HOROVOD_RANK", "0"))


def _dump_failure(error, text):
    """(the exception or None, the text of its traceback)"""
    error.__traceback__ = None
    try:
        data = function.dump(error, "the exception")
        pickle.loads(data)  # some can be pickled and not be read again
    except Exception:
        data = None
    return pickle.dumps((data, text))


class Folder:
    """Reports by files in a folder, one for each rank."""

    def __init__(self, path):
        self._path = path

    def value(self, rank, data):
        self._write("value.%d" % rank, data)

    def failure(self, rank, data):
        self._write("failure.%d" % rank, data)

    def _write(self, name, data):
        unfinished = os.path.join(self._path, "%s.%d" % (name, os.getpid()))
        with open(unfinished, "wb") as file:
            file.write(data)
        os.replace(unfinished, os.path.join(self._path, name))


def main(folder):
    """Of a worker on this machine: `folder` has the call, and gets the results."""
    with open(os.path.join(folder, "call"), "rb") as file:
        packed = file.read()
    call(packed, Folder(os.path.join(folder, "results")))
