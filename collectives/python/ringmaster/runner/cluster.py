"""A function as a HorovodJob on a cluster, by the commands of `ringmaster`: apply, get, logs,
delete.
"""

import json
import pickle
import re
import secrets
import subprocess
import time
from collections import namedtuple

from ringmaster.runner import call_secret, children, function, messages, program, results
from ringmaster.runner.errors import LaunchError

_VOLUME = "runner-call"
_FOLDER = "/etc/ringmaster-runner"
_COMMAND_DEADLINE = 120.0
# Seconds between two looks at the job: while it starts, and while it trains.
_LOOK_STARTING, _LOOK_RUNNING = 1.0, 10.0
_LAST_WORDS = 20.0  # for the logs of a job that is over to end, too
_MOST_AWAY = 600.0  # seconds without an answer, after which the cluster is given up
# In errors of commands: it is of no use to ask again.
_FINAL = ("forbidden", "not found")
_KEPT_AFTER_END = 3600  # where nobody is left who could delete it
_OVER = ("Succeeded", "Failed")
# Seconds for which a job that has trained may be Invalid: an operator of another version may find
# fault with it, until the one of its version leads.
_MOST_INVALID = 900.0


class Place(namedtuple("Place", "kubeconfig context namespace")):
    """Which cluster, as options of every command. None: what `ringmaster` takes by itself."""

    def words(self):
        words = []
        for option, value in (("--kubeconfig", self.kubeconfig), ("--context", self.context),
                              ("-n", self.namespace)):
            if value:
                words += [option, str(value)]
        return words


# What the job is like. `pod`: fields of the pods' spec; `container`: of the worker's container.
Shape = namedtuple("Shape", "np min_np slots image python env pod container timeout")


class Job:
    """One launched call. Use it as a context: the job is deleted when the block is left."""

    def __init__(self, func, kwargs, place, shape, on_line, on_log, on_progress):
        self._program, self._place, self._on_progress = program.find(), place, on_progress
        self._data = call_secret.data_of(func, kwargs)
        self._shape = shape
        self._token = secrets.token_hex(8)
        self._receiver = messages.Receiver(self._token, on_line, on_log)
        self.name = _job_name(function.name_of(func))
        self._told = None
        self._away_since = None
        self._invalid_since = None

    def __enter__(self):
        try:
            self._create()
        except BaseException:
            self._delete()
            raise
        return self

    def __exit__(self, *_):
        self._delete()

    def _create(self):
        """The job is made suspended: it owns the Secret, and its pods need it."""
        self._apply(self._manifest(suspend=True))
        owner = self._get()
        self._apply(call_secret.manifest(self.name, self._data, owner))
        self._apply(self._manifest(suspend=False))
        self._on_progress("job %s in namespace %s" % (self.name, owner["metadata"]["namespace"]))

    def value(self):
        """Waits for the end; rank 0's value. Raises what a rank has raised."""
        with children.Streaming(self._command("logs", self.name, "-f")) as logs:
            self._follow(logs)
        while True:
            state = self._look()
            if self._is_over(state):
                break
            time.sleep(_LOOK_RUNNING if state == "Running" else _LOOK_STARTING)
        failure = self._receiver.first_failure()
        if failure:
            results.raise_failure(*failure)
        if state != "Succeeded":
            raise LaunchError(self._run("why", self.name, may_fail=True).strip()
                              or "job %s: %s" % (self.name, state))
        data = self._receiver.newest("value", 0) or self._read_again()
        if data is None:
            raise LaunchError("job %s has succeeded, but its logs hold no value of rank 0: a "
                              "function must not end its process" % self.name)
        return pickle.loads(data)

    def _follow(self, logs):
        """Until the logs end, or a while after the job's end."""
        look, leave, said = 0.0, None, ""
        while leave is None or time.monotonic() < leave:
            try:
                line = logs.next_line(_LOOK_STARTING)
            except EOFError:
                self._check_logs(logs.wait(), said)
                return
            if line is not None:
                self._receiver.take(line)
                said = line if line.startswith("ringmaster: ") else said
            failed = self._receiver.first_failure() is not None
            if time.monotonic() >= look or failed and line is None:
                state = self._look()
                look = time.monotonic() + (_LOOK_RUNNING if state == "Running" else _LOOK_STARTING)
                over = self._is_over(state)
                if failed and over:
                    return  # what other ranks print until they are ended is of no use
                if over and leave is None:
                    leave = time.monotonic() + _LAST_WORDS

    def _check_logs(self, status, said):
        """Without the logs there will be no value: better said now than after the training. A
        cluster that is away for a while has them yet.
        """
        if status == 0:
            return
        if any(word in said for word in _FINAL):
            raise LaunchError("the logs of job %s can't be read: %s" % (self.name, said))
        self._on_progress("the logs can't be followed any more, and are read at the end: " + said)

    def _is_over(self, state):
        return state in _OVER or state == "Invalid" and \
            time.monotonic() - self._invalid_since >= _MOST_INVALID

    def _look(self):
        """The job's state, told when it is another one; "Unknown" while the cluster is away."""
        try:
            status = self._get().get("status", {})
            state, text = status.get("state", "Pending"), _progress(status)
            self._away_since = None
            if state != "Invalid":
                self._invalid_since = None
            elif self._invalid_since is None:
                # One that has never trained is wrong from the beginning.
                self._invalid_since = time.monotonic() if status.get("epoch") else -_MOST_INVALID
        except LaunchError as error:
            self._away_since = self._away_since or time.monotonic()
            if any(word in str(error) for word in _FINAL) or \
                    time.monotonic() - self._away_since > _MOST_AWAY:
                raise
            state, text = "Unknown", "no answer from the cluster; asking again"
        if text != self._told:
            self._on_progress(text)
        self._told = text
        return state

    def _read_again(self):
        """Rank 0's value in the logs from their beginning, where the stream was cut before it."""
        again = messages.Receiver(self._token, lambda line: None, lambda text: None)
        for line in self._run("logs", self.name).splitlines():
            again.take(line)
        return again.newest("value", 0)

    def _manifest(self, suspend):
        shape = self._shape
        pods = shape.np // shape.slots
        container = dict(shape.container or {}, name="worker", image=shape.image,
                         command=[shape.python, "-m", "ringmaster.runner.worker", _FOLDER])
        container["env"] = list(container.get("env", ())) + [
            {"name": name, "value": str(value)}
            for name, value in {**(shape.env or {}), messages.TOKEN: self._token,
                                "PYTHONUNBUFFERED": "1"}.items()]
        container["volumeMounts"] = list(container.get("volumeMounts", ())) + [
            {"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}]
        pod = dict(shape.pod or {}, containers=[container])
        pod["volumes"] = list(pod.get("volumes", ())) + [
            {"name": _VOLUME, "secret": {"secretName": self.name}}]
        policy = {"suspend": suspend, "ttlSecondsAfterFinished": _KEPT_AFTER_END}
        if shape.timeout:
            policy["activeDeadlineSeconds"] = int(shape.timeout)
        return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob",
                "metadata": {"name": self.name},
                "spec": {"slotsPerWorker": shape.slots, "runPolicy": policy,
                         "elasticPolicy": {"minReplicas": shape.min_np // shape.slots,
                                           "maxReplicas": pods},
                         "worker": {"replicas": pods, "template": {"spec": pod}}}}

    def _command(self, *words):
        return [self._program, *words, *self._place.words()]

    def _run(self, *words, text=None, may_fail=False):
        try:
            done = subprocess.run(self._command(*words), input=text, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, universal_newlines=True,
                                  errors="replace", timeout=_COMMAND_DEADLINE,
                                  **({} if text is not None else {"stdin": subprocess.DEVNULL}))
        except subprocess.TimeoutExpired:
            raise LaunchError("ringmaster %s: no answer within %d s" %
                              (words[0], _COMMAND_DEADLINE))
        if done.returncode != 0 and not may_fail:
            raise LaunchError("ringmaster %s: %s" % (words[0], done.stderr.strip()))
        return done.stdout

    def _apply(self, manifest):
        self._run("apply", "-", text=json.dumps(manifest))

    def _get(self):
        return json.loads(self._run("get", self.name, "-o", "json"))

    def _delete(self):
        try:
            self._run("delete", self.name, may_fail=True)
        except LaunchError as error:  # what the function has returned or raised is worth more
            self._on_progress("job %s could not be deleted: %s" % (self.name, error))


def _progress(status):
    """One line for people: the job's state, and what holds it up."""
    text = status.get("state", "Pending")
    workers = status.get("worldSize", 0)
    if text in ("Pending", "Starting", "Held"):
        held = [one["message"] for one in status.get("conditions", [])
                if one["status"] == "False" and one["type"] in ("Created", "Scheduled", "Started",
                                                                "Running")]
        return "%s: %s" % (text, held[0]) if held else text
    return "%s, %d worker%s" % (text, workers, "" if workers == 1 else "s") if workers else text


def _job_name(name):
    """Of a DNS label that nobody else has; pods' names begin with it."""
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:30].strip("-")
    if not word[:1].isalpha():
        word = "run" if not word else "run-" + word
    return "%s-%s" % (word, secrets.token_hex(3))
