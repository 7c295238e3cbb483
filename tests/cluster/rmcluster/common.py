"""What every part needs: progress lines, errors that end the program, commands, waits with a deadline."""
import subprocess
import sys
import time

from waiting import until

STARTED = time.monotonic()


class Trouble(Exception):
    """Ends the program: its text is for a person, `status` is the exit status."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


def lacks(text):
    """The machine lacks something; the text says what to do about it."""
    return Trouble(text, status=3)


def say(text):
    """Says what is being done, with the seconds since the program started. Standard output belongs to results."""
    print("[%6.1f s] %s" % (time.monotonic() - STARTED, text), file=sys.stderr, flush=True)


def run(*argv, timeout=120, check=True, stdin=None, env=None):
    """Runs a command and returns what it printed; a failure becomes a Trouble that shows the command's own words."""
    argv = [str(word) for word in argv]
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout, env=env)
    except FileNotFoundError:
        raise lacks("%s is not installed (hack/lib/packages, set `cluster`, names the Debian packages)" % argv[0]) from None
    except subprocess.TimeoutExpired:
        raise Trouble("`%s` did not end within %d s" % (" ".join(argv), timeout)) from None
    if check and done.returncode != 0:
        words = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise Trouble("`%s` failed (exit status %d): %s" % (" ".join(argv), done.returncode, words))
    return done.stdout


def wait_until(what, condition, seconds, period=0.1):
    """Returns the first true value of condition(); after `seconds` a Trouble that says what never came."""
    value = until(condition, seconds, period)
    if not value:
        raise Trouble("gave up after %d s waiting for %s" % (seconds, what))
    return value


def tail(path, lines=15):
    """The last lines of a log, or why there are none."""
    try:
        with open(path, errors="replace") as log:
            return "".join(log.readlines()[-lines:]).rstrip()
    except OSError as error:
        return str(error)
