"""Turns what workers have reported into values, or into the exception that one of them raised."""

import os
import pickle
import re

from ringmaster.runner.errors import LaunchError, RankError


def raise_failure(rank, data):
    """Raises the exception of a rank again, caused by a RankError with its traceback."""
    error, text, *host = pickle.loads(data)
    told = RankError(rank, text, *host)
    if error is None:
        raise told
    try:
        error = pickle.loads(error)
    except Exception:
        raise told  # its class is not known here
    raise error from told


def of_folder(folder):
    """{rank: value} of the files that worker.Folder has written. Raises what the first rank raised
    that failed.
    """
    failures = _files(folder, "failure")
    if failures:
        _, rank, path = min(failures)
        raise_failure(rank, _read(path))
    return {rank: _value(rank, _read(path)) for _, rank, path in _files(folder, "value")}


def of_messages(receiver):
    """The same of what workers have sent to a messages.Receiver; of a rank its newest value."""
    failure = receiver.first_failure()
    if failure:
        raise_failure(*failure)
    if receiver.lacking():
        raise LaunchError("the job ended well, but the values of ranks %s have not come whole: their"
                          " output was cut off" % ", ".join(map(str, receiver.lacking())))
    return {rank: _value(rank, data) for what, rank, data in receiver.complete if what == "value"}


def _files(folder, what):
    """[(when it was written, rank, path)]"""
    found = []
    for name in os.listdir(folder):
        match = re.match(what + r"\.(\d+)$", name)
        if match:
            path = os.path.join(folder, name)
            found.append((os.stat(path).st_mtime_ns, int(match[1]), path))
    return found


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _value(rank, data):
    try:
        return pickle.loads(data)
    except Exception as error:
        raise LaunchError("the value of rank %d can't be read here: %s: %s" %
                          (rank, type(error).__name__, error)) from error
