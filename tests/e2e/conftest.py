"""One cluster and one operator for all tests of the session; evidence of every failure."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
from handle import require_programs  # noqa: E402


@pytest.fixture(scope="session")
def cluster():
    """Two nodes with the product's images. RINGMASTER_E2E_CLUSTER=DIR takes a cluster that is up already, and leaves it up."""
    archives = harness.image_archives()
    given = os.environ.get("RINGMASTER_E2E_CLUSTER")
    cluster = harness.Cluster(given or os.environ.get("RINGMASTER_E2E_DIR", "/tmp/ringmaster-e2e"))
    if not given:
        require_programs()
        cluster.down(check=False)
        cluster.up("--nodes", 2, "--gpus", 4, "--grace", 15)
    try:
        cluster.run("load-image", *archives)
        yield cluster
    finally:
        if not given:
            cluster.down()


@pytest.fixture(scope="session")
def operator(cluster):
    """The cluster, with the operator installed by its chart."""
    cluster.install_operator()
    return cluster


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    cluster = next((item.funcargs[name] for name in ("operator", "cluster") if name in getattr(item, "funcargs", {})), None)
    if not report.failed or cluster is None:
        return
    directory = harness.EVIDENCE / item.name
    try:
        lines = cluster.collect(directory)
    except Exception as error:  # what went wrong with the test matters more than what went wrong here
        lines = ["collecting ended early: %s" % error]
    report.sections.append(("what decides (everything is in %s)" % directory, "\n".join(lines)))
