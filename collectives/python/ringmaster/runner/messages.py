"""What a worker tells the process that launched it, in lines of its output.

A line is a mark that holds the launch's own random token, and JSON. What is long is cut into
several lines: a launcher, or a kubelet, may cut a line that is longer.
"""

import base64
import hashlib
import json
import os
import sys

# Set for the workers of run() and HorovodRunner.
TOKEN = "RINGMASTER_LAUNCH_TOKEN"
_MARK = "ringmaster-runner:"
_CHUNK = 6000  # bytes in a line, before base64
LONGEST_TEXT = 4000  # characters of one log_to_driver()


def log_to_driver(message):
    """Shows `message` where the job was launched, whether or not the workers' output is shown.

    At most 4,000 characters; the rest is cut off. In a process that run() or HorovodRunner did not
    start it is printed.
    """
    message = str(message)
    if len(message) > LONGEST_TEXT:
        message = message[:LONGEST_TEXT] + "... (%d characters more)" % (
            len(message) - LONGEST_TEXT)
    if os.environ.get(TOKEN):
        _say({"log": message})
    else:
        print(message, flush=True)


def send(what, rank, data):
    """Sends bytes: what is "value" or "failure"."""
    check = hashlib.sha256(data).hexdigest()
    chunks = [data[i:i + _CHUNK] for i in range(0, len(data), _CHUNK)] or [b""]
    for number, chunk in enumerate(chunks):
        _say({"what": what, "rank": rank, "part": number, "parts": len(chunks), "sha256": check,
              "data": base64.b64encode(chunk).decode()})


def _say(message):
    line = "%s%s:%s\n" % (_MARK, os.environ[TOKEN], json.dumps(message))
    # One write: other threads, and what the script left in its buffers, don't come in between.
    sys.stdout.flush()
    sys.__stdout__.flush()
    os.write(1, line.encode())


class Receiver:
    """Tells lines of output from what workers say to the launcher."""

    def __init__(self, token, on_line, on_log):
        self._mark = _MARK + token + ":"
        self._on_line, self._on_log = on_line, on_log
        self._parts = {}  # (what, rank, sha256): {part: bytes}
        self.complete = []  # (what, rank, bytes), as they came
        self.spoilt = set()  # ranks of values that have come, and not as they were sent

    def take(self, line):
        at = line.find(self._mark)
        if at < 0:
            self._on_line(line)
            return
        if at > 0 and not line[:at].endswith("] "):  # what stood in a line without its end
            self._on_line(line[:at])
        try:
            message = json.loads(line[at + len(self._mark):])
        except ValueError:
            return  # cut off: its worker was killed
        if "log" in message:
            self._on_log(message["log"])
        else:
            self._take_part(message)

    def _take_part(self, message):
        key = message["what"], message["rank"], message["sha256"]
        parts = self._parts.setdefault(key, {})
        parts[message["part"]] = base64.b64decode(message["data"])
        if len(parts) < message["parts"]:
            return
        data = b"".join(parts[number] for number in sorted(parts))
        del self._parts[key]
        if hashlib.sha256(data).hexdigest() == message["sha256"]:
            self.complete.append((message["what"], message["rank"], data))
        elif message["what"] == "value":
            self.spoilt.add(message["rank"])

    def newest(self, what, rank):
        """The last complete bytes of a rank; None: there are none."""
        for found_what, found_rank, data in reversed(self.complete):
            if (found_what, found_rank) == (what, rank):
                return data
        return None

    def lacking(self):
        """Ranks of which a value has begun to come, and none has come whole."""
        begun = {rank for what, rank, _ in self._parts if what == "value"} | self.spoilt
        return sorted(begun - {rank for what, rank, _ in self.complete if what == "value"})

    def first_failure(self):
        """(rank, bytes) of the failure that came first; None."""
        for what, rank, data in self.complete:
            if what == "failure":
                return rank, data
        return None
