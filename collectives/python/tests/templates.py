"""Starts the workers of tests by forking a process that has imported their framework already,
because importing it is most of what a short worker does.

There are two such templates for one interpreter, whose hash seeds differ, so that ranks do not
agree on the order of a set by accident.
"""

import json
import os
import select
import signal
import socket
import subprocess
import time

from fake_sidecar import start_process

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "template.py")
# Read by the interpreter, the loader or a framework when it starts: workers that differ in one of
# these have different templates.
READ_AT_START = ("LD_", "PYTHON", "OMP_", "MKL_", "KMP_", "TORCH_", "CUDA_", "TF_", "KERAS_")
DEADLINE = 240


class Templates:
    """Used by one thread."""

    def __init__(self):
        self._templates = {}

    def start(self, command, log, environ):
        """As fake_sidecar.start_process(); `command`: interpreter, script, arguments."""
        python, script = command[:2]
        if script.startswith("-"):
            return start_process(command, log, environ)
        hash_seed = str(int(environ["RINGMASTER_SLOT"]) % 2 + 1)
        read = sorted(pair for pair in environ.items() if pair[0].startswith(READ_AT_START))
        key = (python, hash_seed, *read)
        if key not in self._templates:
            self._templates[key] = _Template(python, dict(environ, PYTHONHASHSEED=hash_seed))
        return self._templates[key].fork(command[1:], log, environ)

    def close(self):
        for template in self._templates.values():
            template.close()


class _Template:
    def __init__(self, python, environ):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [python, TEMPLATE, str(theirs.fileno())], env=environ,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self._channel = ours
        self._ended = {}  # pid: exit status as Popen has it

    def fork(self, argv, log, environ):
        self._channel.sendall(json.dumps({"argv": argv, "environ": environ, "log": log}).encode())
        deadline = time.monotonic() + DEADLINE
        pid = None
        while pid is None:
            assert time.monotonic() < deadline, "the template starts no worker"
            pid = self._hear(DEADLINE)
        return _Worker(self, pid)

    def _hear(self, seconds):
        """Reads one message; the pid of a worker that has been started, else None."""
        if not select.select([self._channel], [], [], seconds)[0]:
            return None
        received = self._channel.recv(4096)
        assert received, "the template has ended, with %s" % self._process.wait(DEADLINE)
        message = json.loads(received)
        if "ended" in message:
            self._ended[message["ended"]] = message["status"]
        return message.get("started")

    def status_of(self, pid, seconds):
        deadline = time.monotonic() + seconds
        while pid not in self._ended:
            left = deadline - time.monotonic()
            self._hear(max(0, left))
            if left <= 0:
                break
        return self._ended.get(pid)

    def close(self):
        self._channel.close()
        self._process.wait()


class _Worker:
    """As much of subprocess.Popen as the tests use."""

    def __init__(self, template, pid):
        self._template = template
        self.pid = pid
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            self.returncode = self._template.status_of(self.pid, 0)
        return self.returncode

    def wait(self, timeout=DEADLINE):
        self.returncode = self._template.status_of(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("worker %d" % self.pid, timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
