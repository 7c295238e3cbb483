"""Waiting for what can only be looked at from outside: another process, an API server."""
import time


def until(condition, seconds, period=0.1, over=None):
    """The first true value of condition(); None after `seconds`, or when over() says that no more will come."""
    deadline = time.monotonic() + seconds
    while True:
        last = time.monotonic() >= deadline or (over is not None and over())
        value = condition()  # after over(): the last thing that happened is seen too
        if value or last:
            return value or None
        time.sleep(period)
