"""Runs the training script slowly, until the file /audit/hurry is there: then as fast as it can, up to the epoch that the file names.

So a test has all the time that it needs to do something to a training job, and doesn't wait for the job's end.
"""
import argparse
import os
import runpy
import sys
import time

HURRY = "/audit/hurry"
_sleep = time.sleep


def last_epoch():
    """The one to end after; None: the test has not said so yet."""
    try:
        with open(HURRY) as file:
            return int(file.read())
    except FileNotFoundError:
        return None


def sleep_unless_hurried(seconds):
    if not os.path.exists(HURRY):
        _sleep(seconds)


class Arguments(argparse.Namespace):
    """The script's own, but for `epochs`, which the test may shorten while it runs: all ranks read this between the same two
    epochs, and the file names one that none of them has come near to."""

    @property
    def epochs(self):
        return last_epoch() or self.given_epochs

    @epochs.setter
    def epochs(self, value):
        self.given_epochs = value


_parse = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = lambda parser, arguments=None: _parse(parser, arguments, Arguments())
time.sleep = sleep_unless_hurried
sys.argv = sys.argv[1:]
sys.path.insert(0, os.getcwd())
runpy.run_path(sys.argv[0], run_name="__main__")
