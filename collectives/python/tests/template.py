"""The process that templates.py starts: it imports what workers import, then forks a worker for each
order that it gets, and says how each has ended. `template.py FD`: FD is a socket.

A worker gets what the interpreter would have given `python script arguments`: a __main__ of its
own, its environment, its output, its seeds and its exit status.
"""

import builtins
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import types

# Of the frameworks those that the interpreter has.
MODULES = ("torch", "torch.utils.data", "torch.distributed", "torch.nn.parallel",
           "tensorflow", "keras")


def _serve(channel):
    """Returns in the workers, each with its order."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    while True:
        ready = select.select([channel, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
            _report_ended(channel)
        if channel in ready:
            order = channel.recv(1 << 20)
            if not order:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for fd in (woken, wake):
                    os.close(fd)
                channel.close()
                return json.loads(order)
            channel.send(json.dumps({"started": pid}).encode())


def _report_ended(channel):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        channel.send(json.dumps({"ended": pid,
                                 "status": os.waitstatus_to_exitcode(status)}).encode())


def _become(order):
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.environ.clear()
    os.environ.update(order["environ"])
    sys.argv = order["argv"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    script = types.ModuleType("__main__")
    script.__file__ = sys.argv[0]
    script.__builtins__ = builtins
    sys.modules["__main__"] = script
    with open(script.__file__) as file:
        code = compile(file.read(), script.__file__, "exec")
    exec(code, script.__dict__)


if __name__ == "__main__":
    for module in MODULES:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            pass
    _become(_serve(socket.socket(fileno=int(sys.argv[1]))))
