"""Runs a script in whose steps time.sleep() sets the pace, slowly, until the file /audit/hurry is there.

So a test has all the time that it needs to do something to a training job, and doesn't wait for the job's end.
"""
import os
import runpy
import sys
import time

HURRY = "/audit/hurry"
_sleep = time.sleep


def sleep_unless_hurried(seconds):
    if not os.path.exists(HURRY):
        _sleep(seconds)


time.sleep = sleep_unless_hurried
sys.argv = sys.argv[1:]
sys.path.insert(0, os.getcwd())
runpy.run_path(sys.argv[0], run_name="__main__")
