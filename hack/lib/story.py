#!/usr/bin/env python3
"""Drives the digits job through the story of hack/quickstart while `ringmaster run` shows it.

usage: story.py --run-dir DIR JOB

Waits for each state of the world (with a deadline) and types the next command, as a person in a second terminal would.
Exit status: 0 the whole story was played, 1 a state never came (which one is said).
"""
import argparse
import json
import subprocess
import sys
import time


class Story:
    def __init__(self, run_dir, job):
        self.run_dir, self.job = run_dir, job

    def ringmaster(self, *words, show=True):
        if show:
            # The progress line of `ringmaster run` is redrawn in place: begin a line of our own.
            print("\r\033[K" * sys.stdout.isatty() + "        $ ringmaster " + " ".join(words), flush=True)
        return subprocess.run(["ringmaster", *words, "--run-dir", self.run_dir], capture_output=True, text=True, timeout=60)

    def act(self, *words):
        done = self.ringmaster(*words)
        if done.returncode != 0:
            sys.exit("story: `ringmaster %s` failed: %s" % (" ".join(words), (done.stderr or done.stdout).strip()))

    def status(self):
        done = self.ringmaster("get", self.job, "-o", "json", show=False)
        try:
            return json.loads(done.stdout).get("status", {}) if done.returncode == 0 else {}
        except ValueError:
            return {}

    def wait(self, what, condition, seconds=90):
        """Returns the status for which `condition` holds; gives up after `seconds`."""
        deadline = time.monotonic() + seconds
        status = {}
        while time.monotonic() < deadline:
            status = self.status()
            if status and condition(status):
                return status
            if any(c["type"] in ("Succeeded", "Failed") and c["status"] == "True" for c in status.get("conditions", [])):
                sys.exit("story: the job ended while waiting for %s" % what)
            time.sleep(0.2)
        sys.exit("story: %s did not come within %d s; status was: %s" % (what, seconds, json.dumps(status)))

    def world(self, size, after_epoch=0):
        return self.wait(
            "a world of %d" % size,
            lambda s: s.get("worldSize") == size and s.get("epoch", 0) > after_epoch and training(s))["epoch"]

    def play(self):
        pod = self.job + "-worker-%d"
        epoch = self.world(4)
        pause()
        self.act("kill", pod % 2, "--worker", "0")
        epoch = self.world(4, after_epoch=epoch + 1)  # one view without it, one with it again
        pause()
        self.act("drain", pod % 1)
        epoch = self.world(4, after_epoch=epoch + 1)
        pause()
        self.act("scale", self.job, "--replicas", "6")
        self.world(6, after_epoch=epoch)


def training(status):
    return not any(c["type"] == "Rebuilding" and c["status"] == "True" for c in status.get("conditions", []))


def pause():
    time.sleep(1.5)  # for the eyes: a bit of training between the acts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-dir", required=True)
    parser.add_argument("job")
    args = parser.parse_args()
    Story(args.run_dir, args.job).play()


if __name__ == "__main__":
    main()
