"""The worker's end of run() and HorovodRunner: calls the function that was sent, and tells what
came of it.
"""

import os
import pickle
import socket
import sys
import traceback

from ringmaster import _core
from ringmaster.runner import call_secret, function, messages
from ringmaster.runner.errors import FunctionError

# Of a value that goes through a pod's log, which kubelets cut off at 10 MiB.
MOST_BYTES = 4 << 20
# The same of run() on several machines, whose kubelet is ours.
MOST_BYTES_OF_HOSTS = 64 << 20
# Seconds: it is the sidecar that decides how long a start may take.
_ANY_TIME = 31622400.0
EXCEPTION_EXIT = 1  # exit status: no rule of a failure policy is about it, so the job fails


def call(packed, report, most_bytes=None):
    """Calls what function.pack() made. `report` gets value(rank, bytes) or failure(rank, bytes).
    `most_bytes`: that a value may have; None: any number.
    """
    try:
        called, args, kwargs = function.unpack(packed)
        value = called(*args, **kwargs)
        name = function.name_of(called)
        data = function.dump(value, "the value of %s" % name)
        if most_bytes and len(data) > most_bytes:
            raise FunctionError("the value of %s has %d bytes, allowed are %d: write it to a volume"
                                " and return its name" % (name, len(data), most_bytes))
    except SystemExit:
        raise  # a worker that was drained or dropped, or a script's own wish
    except Exception as error:
        _end_if_dropped(error)
        text = traceback.format_exc()
        print(text, end="", file=sys.stderr, flush=True)
        report.failure(place(), _dump_failure(error, text, report.host()))
        sys.exit(EXCEPTION_EXIT)
    if _core._process != os.getpid():
        # The function uses no collectives. All workers agree on the job's end all the same.
        _core.init(_ANY_TIME)
    if _core.is_joining():
        return  # it has no rank, and what it did was no part of the job
    _core.shutdown()  # until all have agreed on the end ranks may still move
    report.value(place(), data)


def _end_if_dropped(error):
    """Ends this process as what a graph of TensorFlow has made another error of would have."""
    calling = sys.modules.get("ringmaster.tensorflow.calling")
    inner = calling.error_behind(error) if calling else None
    if isinstance(inner, SystemExit):
        raise inner from error


def place():
    """This worker's rank, after a shutdown() the one that it had last; where it never had one, the
    number that it began with.
    """
    rank = _core.newest_rank()
    return int(os.environ.get("HOROVOD_RANK", "0")) if rank is None else rank


def _dump_failure(error, text, host):
    """(the exception or None, the text of its traceback, the machine)"""
    error.__traceback__ = None
    try:
        data = function.dump(error, "the exception")
        pickle.loads(data)  # some can be pickled and not be read again
    except Exception:
        data = None
    return pickle.dumps((data, text, host))


class Folder:
    """Reports by files in a folder, one for each rank."""

    def __init__(self, path):
        self._path = path

    def host(self):
        return ""

    def value(self, rank, data):
        self._write("value.%d" % rank, data)

    def failure(self, rank, data):
        self._write("failure.%d" % rank, data)

    def _write(self, name, data):
        unfinished = os.path.join(self._path, "%s.%d" % (name, os.getpid()))
        with open(unfinished, "wb") as file:
            file.write(data)
        os.replace(unfinished, os.path.join(self._path, name))


class Log:
    """Reports by lines of this worker's output: the values of all ranks, or of rank 0 alone."""

    def __init__(self, all_values=False):
        self._all = all_values

    def host(self):
        """The machine by its name and address, or the pod."""
        address = os.environ.get("RINGMASTER_POD_IP", "")
        return "%s (%s)" % (socket.gethostname(), address) if address else socket.gethostname()

    def value(self, rank, data):
        if rank == 0 or self._all:
            messages.send("value", rank, data)

    def failure(self, rank, data):
        messages.send("failure", rank, data)


def main_of_hosts():
    """Of a worker of run() on several machines: `ringmaster run --carry` has brought the call."""
    with open(os.path.join(os.environ["RINGMASTER_MOUNT_CARRIED"], "file"), "rb") as file:
        packed = file.read()
    call(packed, Log(all_values=True), MOST_BYTES_OF_HOSTS)


def main_of_cluster(folder):
    """Of a worker in a pod: `folder` is where the Secret of the call is mounted."""
    # Local mode has a folder of its own for each volume.
    folder = os.environ.get("RINGMASTER_MOUNT_RUNNER_CALL", folder)
    call(call_secret.read(folder), Log(), MOST_BYTES)


def main(folder):
    """Of a worker on this machine: `folder` has the call, and gets the results."""
    with open(os.path.join(folder, "call"), "rb") as file:
        packed = file.read()
    call(packed, Folder(os.path.join(folder, "results")))


if __name__ == "__main__":
    main_of_cluster(sys.argv[1]) if len(sys.argv) > 1 else main_of_hosts()
