"""Shared by the tests: jobs of real worker processes under a fake sidecar."""

import os
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tests", "support"))


def fake_gpu(folder, **more):
    """The environment in which NCCL and CUDA are the fake (collectives/nccl/fake/library)."""
    from ringmaster import _library
    libraries = os.path.join(os.path.dirname(os.path.realpath(_library.load()._name)), "..",
                             "fake_gpu")
    assert os.path.exists(os.path.join(libraries, "libnccl.so.2")), \
        "not built: ringmaster_fake_gpu_library"
    return dict(more, LD_LIBRARY_PATH=libraries, RINGMASTER_FAKE_GPU_FOLDER=str(folder))


@pytest.fixture(autouse=True)
def no_optimizers_of_other_tests(monkeypatch):
    """A script has its own; here they share a process."""
    from ringmaster.elastic import Steps
    monkeypatch.setattr(Steps, "_enders", [])


@pytest.fixture
def world():
    """A world of one in this process."""
    import ringmaster
    ringmaster.init()
    yield
    ringmaster.shutdown()


@pytest.fixture(scope="session")
def templates():
    from templates import Templates
    made = Templates()
    yield made
    made.close()


@pytest.fixture
def job(templates):
    """job(script, size, **environ): starts workers; all are gone at the test's end."""
    from fake_sidecar import Job
    started = []
    # A folder with a short name: a unix socket's path has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:

        def start(script, size, *arguments, spares=(), python=None, rests=True, **environ):
            path = script if os.path.isabs(script) else os.path.join(HERE, "workers", script)
            started.append(Job(folder, [path, *arguments], size, environ, spares, python,
                               rests, templates.start).__enter__())
            return started[-1]

        yield start
        for one in started:
            one.__exit__()


@pytest.fixture
def passes(job):
    """passes(script, size): runs a script of assertions on all ranks; every rank must end with 0.
    """

    def run(script, size, *arguments, **environ):
        one = job(script, size, *arguments, **environ)
        codes = one.wait()
        assert set(codes.values()) == {0}, one.logs()
        return one

    return run
