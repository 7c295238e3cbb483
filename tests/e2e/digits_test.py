"""The digits example on a real cluster: the manifest of local mode, the image named, nothing else."""


def test_digits_trains_to_the_end_on_a_cluster(digits):
    job = digits(epochs=30)
    job.wait_world(4)
    nodes = {pod["spec"]["nodeName"] for pod in job.pods().values()}
    assert len(nodes) > 1, "four workers on three nodes of the same size all went to %s" % nodes
    # What docs/operations.md says of a healthy job.
    for condition in ("Created", "Scheduled", "Started", "Running"):
        job.cluster.kubectl("wait", "-n", job.namespace, "hvdjob/" + job.name, "--for=condition=" + condition, "--timeout=60s")
    job.finish()
    job.cluster.kubectl("wait", "-n", job.namespace, "hvdjob/" + job.name, "--for=condition=Succeeded", "--timeout=60s")
