"""Follows a host discovery script: workers of a running job come and go with the slots."""

import json
import subprocess
import sys
import threading
import time

from ringmaster.runner import hosts
from ringmaster.runner.errors import LaunchError

PERIOD = 1.0  # seconds between two looks, as in Horovod
PATIENCE = 600.0  # seconds until the slots that the job needs to start must be there
_PARTING = 2.0  # seconds
_DEADLINE = 60.0  # seconds that the script, or a command, may take


class Script:
    """Asks the script for the slots of this machine."""

    def __init__(self, path, slots, np):
        self._path, self._slots, self._np = path, slots, np

    def slots_here(self):
        """Slots of this machine. LaunchError where the script fails or names another machine."""
        try:
            ended = subprocess.run([self._path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, universal_newlines=True,
                                   timeout=_DEADLINE)
        except subprocess.TimeoutExpired:
            raise LaunchError("--host-discovery-script %s: not done after %d s" %
                              (self._path, _DEADLINE))
        except OSError as error:
            raise LaunchError("--host-discovery-script %s: can't be run: %s" % (self._path, error))
        if ended.returncode != 0:
            raise LaunchError("--host-discovery-script %s: ended with exit code %d: %s" %
                              (self._path, ended.returncode, ended.stderr.strip() or "no message"))
        return hosts.slots_here(hosts.from_script(ended.stdout, self._slots), self._np)


def wait_for_slots(script, np, seconds=PATIENCE):
    """Waits until the script allows `np` workers; how many it allows then. A script that fails at
    the first call is an error at once.
    """
    end = time.monotonic() + seconds
    slots = script.slots_here()
    while slots < np:
        if time.monotonic() > end:
            raise LaunchError("-np %d: the discovery script has allowed %d after %d s" %
                              (np, slots, seconds))
        time.sleep(min(PERIOD, max(0.0, end - time.monotonic())))
        try:
            slots = script.slots_here()
        except LaunchError as error:
            print("horovodrun: %s" % error, file=sys.stderr)
    return slots


class Follower:
    """Scales the job of the run in `run_dir` to the slots, from `workers` on, until stop().

    `say` gets lines for people. A script that fails is said once, and asked again.
    """

    def __init__(self, script, plan, program, run_dir, workers, say):
        self._script, self._plan, self._say = script, plan, say
        self._program, self._run_dir = program, run_dir
        self._workers = workers
        self._said = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(_PARTING)  # a script that hangs now holds nobody up

    def _follow(self):
        while not self._stop.wait(PERIOD):
            try:
                self._look()
                self._said = None
            except LaunchError as error:
                if str(error) != self._said:
                    self._say(str(error))
                self._said = str(error)

    def _look(self):
        slots = self._script.slots_here()
        wanted = max(self._plan.min_np, min(slots, self._plan.max_np))
        if wanted == self._workers:
            return
        jobs = json.loads(self._command("get", "-o", "json") or "{}").get("items", [])
        if not jobs:
            return  # not yet made
        self._command("scale", jobs[0]["metadata"]["name"], "--replicas", str(wanted))
        self._say("slots: %d; workers wanted: %d instead of %d" % (slots, wanted, self._workers))
        self._workers = wanted

    def _command(self, *words):
        ended = subprocess.run([self._program, *words, "--run-dir", self._run_dir],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, universal_newlines=True, timeout=_DEADLINE)
        if ended.returncode != 0:
            raise LaunchError("ringmaster %s: %s" % (" ".join(words), ended.stderr.strip()))
        return ended.stdout
