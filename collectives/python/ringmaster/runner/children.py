"""Programs that this process starts: they end with it, and get no Ctrl-C of the terminal behind its
back.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

_GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")
# `ringmaster run` ends its workers within seconds of the first signal.
_GRACE = 30.0
_LAST_WORDS = 10.0
_LINES_WAITING = 10000


def start(command, environ=None, **options):
    """subprocess.Popen of a command in a session of its own, asked to end when this process dies.

    A Ctrl-C in the terminal reaches this process alone, which hands it on: a second SIGINT would
    have `ringmaster run` end without cleaning up.
    """
    guarded = [sys.executable, "-I", "-S", _GUARD, str(os.getpid()), *command]
    return subprocess.Popen(guarded, env=environ, start_new_session=True,
                            stdin=subprocess.DEVNULL, **options)


def status_of(process):
    """The exit status as a shell has it: 128 + n where signal n ended the process."""
    return 128 - process.returncode if process.returncode < 0 else process.returncode


class Streaming:
    """A command whose output comes line by line to the thread that asks for it.

    Use it as a context: however the block is left, the command has ended.
    """

    def __init__(self, command, environ=None):
        self._lines = queue.Queue(_LINES_WAITING)
        self.process = start(command, environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             universal_newlines=True, errors="replace")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def lines(self):
        """Each line of output and error, until both are closed. Ctrl-C interrupts the wait."""
        while True:
            line = self._lines.get()
            if line is None:
                return
            yield line

    def next_line(self, seconds):
        """The next line; None: none within `seconds`. EOFError at the end."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line is None:
            raise EOFError
        return line

    def wait(self):
        """The exit status, after lines() has come to its end."""
        self.process.wait()
        return status_of(self.process)

    def stop(self, on_line=lambda line: None):
        """Ends the command, if it runs: SIGINT, and SIGKILL after its grace. What it says meanwhile
        goes to `on_line`.
        """
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self._drain(time.monotonic() + _GRACE, on_line)
            if self.process.poll() is None:
                self.process.kill()
        self.process.wait()
        self._drain(time.monotonic() + _LAST_WORDS, on_line)
        self._reader.join(_LAST_WORDS)
        if not self._reader.is_alive():
            self.process.stdout.close()

    def _drain(self, until, on_line):
        while self._reader.is_alive() or not self._lines.empty():
            try:
                line = self._lines.get(timeout=min(0.1, max(0.0, until - time.monotonic())))
            except queue.Empty:
                if time.monotonic() >= until:
                    return
                continue
            if line is None:
                return
            on_line(line)
