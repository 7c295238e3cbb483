"""One cluster and one operator for all tests of the session; evidence of every failure."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
from handle import require_programs  # noqa: E402


standing = []  # the cluster, for the hook below: a test whose setup failed has no fixtures to ask


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
    standing.append(cluster)
    try:
        cluster.run("load-image", *archives)
        yield cluster
    finally:
        standing.clear()
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
    if not report.failed or not standing:
        return
    directory = harness.EVIDENCE / item.name
    try:
        lines = standing[0].collect(directory)
    except Exception as error:  # what went wrong with the test matters more than what went wrong here
        lines = ["collecting ended early: %s" % error]
    report.sections.append(("what decides (everything is in %s)" % directory, "\n".join(lines)))
