"""The audit log: what this worker did, a line for each completed step, for check.py to judge."""

import json
import os
import time


class Audit:
    """Writes <pod>-<slot>-<incarnation>-<pid>.jsonl into `directory`; nothing if it is empty."""

    def __init__(self, directory, environ):
        self._file = None
        if not directory:
            return
        os.makedirs(directory, exist_ok=True)
        parts = [environ.get(name, default) for name, default in (
            ("RINGMASTER_POD_NAME", "local"), ("RINGMASTER_SLOT", "0"),
            ("RINGMASTER_INCARNATION", "0"))]
        name = "-".join(parts + [str(os.getpid())]) + ".jsonl"
        self._file = open(os.path.join(directory, name), "a", buffering=1)

    def write(self, **line):
        """Flushed before it returns: a worker killed afterwards has said what it did."""
        if self._file:
            self._file.write(json.dumps(dict(line, t=time.time())) + "\n")
