import os

import pytest

import engines


@pytest.fixture(scope="session")
def helper():
    started = engines.Helper()
    yield started
    started.stop()


@pytest.fixture(scope="session")
def real():
    """The real API server, in the run that is about it; else None."""
    if os.environ.get("RINGMASTER_CRD_REAL") != "1":
        yield None
        return
    server = engines.start_real()
    yield engines.Http("real", server.connection, engines.apiserver.TOKEN)
    server.stop()
