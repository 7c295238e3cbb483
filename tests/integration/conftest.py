import signal

import pytest

import harness

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where the tests run under nohup


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """After every test, however it ended: no process, socket, shared memory or temporary file more than before."""
    before = harness.snapshot()
    yield
    left = harness.left_behind(before)
    assert not left, "left behind:\n" + left


@pytest.fixture
def write(tmp_path):
    """write(text, name="job.yaml") -> path of the file"""
    def to(text, name="job.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path
    return to
