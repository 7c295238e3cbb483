"""One cluster and one operator for all tests of the session; evidence of every failure; the table of what disruptions cost."""
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import digits_job  # noqa: E402
import harness  # noqa: E402
import story  # noqa: E402
from handle import require_programs  # noqa: E402


standing = []  # the cluster, for the hook below: a test whose setup failed has no fixtures to ask
rows = []  # of the table of disruptions


@pytest.fixture(scope="session")
def cluster():
    """Nodes (RINGMASTER_E2E_NODES, three) with the product's images. RINGMASTER_E2E_CLUSTER=DIR takes a cluster that is up already, and leaves it up."""
    archives = harness.image_archives()
    given = os.environ.get("RINGMASTER_E2E_CLUSTER")
    cluster = harness.Cluster(given or os.environ.get("RINGMASTER_E2E_DIR", "/tmp/ringmaster-e2e"))
    if not given:
        require_programs()
        cluster.down(check=False)
        cluster.up("--nodes", os.environ.get("RINGMASTER_E2E_NODES", "3"), "--gpus", 4, "--grace", 15)
    standing.append(cluster)
    try:
        cluster.run("load-image", *archives)
        yield cluster
    finally:
        standing.clear()
        if not given:
            cluster.down()


@pytest.fixture(scope="module")
def operator(cluster):
    """The cluster, with the operator installed by its chart. For each file anew: one of them takes it away."""
    cluster.install_operator()
    return cluster


@pytest.fixture
def audit(cluster, request):
    """A folder that is the same on all nodes, as their file systems are this machine's."""
    folder = pathlib.Path(cluster.dir, "shared", request.node.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    shutil.copy(digits_job.PACED, folder)
    return folder


@pytest.fixture
def digits(operator, audit):
    """digits(...) applies the example's manifest and returns the job; it is deleted afterwards."""
    jobs = []

    def start(name="digits", replicas=4, epochs=50, pace_ms=80, **laid_over):
        operator.apply(digits_job.manifest(name, audit, replicas, epochs, pace_ms, **laid_over))
        jobs.append(digits_job.DigitsJob(operator, name, audit))
        return jobs[-1]

    yield start
    for job in jobs:
        job.delete()


@pytest.fixture
def tell():
    """tell(story, size) adds the story's row to the table that the run ends with."""
    def add(told, size):
        rows.append(told.row(size))

    return add


def pytest_terminal_summary(terminalreporter):
    if rows:
        text = "\n".join([story.HEAD, *rows]) + "\n"
        harness.EVIDENCE.mkdir(parents=True, exist_ok=True)
        (harness.EVIDENCE / "disruptions.md").write_text(text)
        terminalreporter.write("\n" + text)


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
