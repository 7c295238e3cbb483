"""What takes pods away and what brings them back, done to a training job as a person or a controller would.

Each story ends as the checker says: no step lost. Its row is printed at the end of the run: docs/disruptions.md has them.
"""
import concurrent.futures
import json

import pytest

from story import Story


def living(job):
    return {name: pod for name, pod in job.pods().items() if "deletionTimestamp" not in pod["metadata"]}


def a_pod(job, but=()):
    """(name, pod) of the last worker: not the coordinator, whose pod is the first."""
    return max((name, pod) for name, pod in living(job).items() if name not in but)


def kill_training_process(job, pod):
    """Kill -9 of the one that trains: a standby beside it lives."""
    pid = next(worker["pid"] for worker in job.sidecar(pod)["workers"] if not worker["standby"])
    job.exec(pod, "sh", "-c", "kill -9 %d" % pid, container="worker")


def standby_waits(job, pod):
    return any(worker["standby"] and worker["connected"] for worker in job.sidecar(pod)["workers"])


@pytest.mark.parametrize("standbys, what", [(0, "`kill -9` of a worker's process"), (1, "the same with `standbyPerPod: 1`")],
                         ids=["alone", "standby"])
def test_a_killed_worker_process(digits, tell, standbys, what):
    job = digits(elastic={"standbyPerPod": standbys})
    epoch = job.wait_bootstrapped(4)
    if standbys:
        job.cluster.wait("standbys that have done their imports", lambda: all(standby_waits(job, pod) for pod in job.pods()))
    story = Story(job, job.audit, what)
    kill_training_process(job, "digits-worker-2")
    job.wait_world(4, after_epoch=epoch + 1)  # one view without it, one with it again
    job.wait_steps(5)
    story.over()
    assert story.pods_after == story.pods_before, "the launcher restarts a worker, no pod is made for it"
    assert "WorkerRestarted" in story.events
    # With a standby the operator mostly hears of both views at once.
    assert standbys or "WorkerLost" in story.events
    job.finish()
    tell(story, 4)


def forget_lineage(audit, lineage):
    """The example keeps no checkpoint: what it did before it began again is another run, of the same steps."""
    for path in audit.glob("*.jsonl"):
        if json.loads(path.read_text().split("\n", 1)[0])["view"] >> 40 == lineage:
            path.unlink()


def test_all_worker_processes_are_killed(digits):
    job = digits(replicas=2)
    job.wait_bootstrapped(2)
    story = Story(job, job.audit, "`kill -9` of all workers' processes")
    with concurrent.futures.ThreadPoolExecutor() as hands:
        list(hands.map(lambda pod: kill_training_process(job, pod), list(job.pods())))
    job.wait_world(2, after_epoch=2 << 40)
    story.over()
    assert "StartedAgain" in story.events
    assert story.pods_after == story.pods_before
    assert job.status["faults"] == 1
    forget_lineage(job.audit, 1)
    job.wait_steps(5)
    job.finish()


def replaced(job, tell, epoch, what, act, victim):
    """act() makes the pod `victim` go; another comes, and nothing is lost. Returns the story."""
    uid = job.pods()[victim]["metadata"]["uid"]
    story = Story(job, job.audit, what)
    act()
    job.cluster.wait("the pod is gone", lambda: uid not in {pod["metadata"]["uid"] for pod in job.pods().values()})
    job.wait_world(4, after_epoch=epoch + 1)
    job.wait_steps(5)
    story.over()
    assert len(story.pods_after) == 4 and len(story.pods_after - story.pods_before) == 1
    job.finish()
    tell(story, 4)
    return story


def test_a_deleted_pod(digits, tell):
    job = digits()
    epoch = job.wait_bootstrapped(4)
    name, _ = a_pod(job)
    story = replaced(job, tell, epoch, "`kubectl delete pod`", lambda: job.cluster.kubectl("delete", "pod", name, "--wait=false"), name)
    assert "PodDrained" in story.events and "WorkerLost" not in story.events


def test_a_pod_deleted_by_force(digits, tell):
    job = digits()
    epoch = job.wait_bootstrapped(4)
    name, _ = a_pod(job)
    story = replaced(job, tell, epoch, "`kubectl delete pod --force`",
                     lambda: job.cluster.kubectl("delete", "pod", name, "--force", "--grace-period=0", "--wait=false"), name)
    # Which of them depends on how long its kubelet lets it live.
    assert {"PodDrained", "PodLost", "WorkerLost"} & set(story.events)


def test_an_evicted_pod(digits, tell):
    job = digits()
    epoch = job.wait_bootstrapped(4)
    name, _ = a_pod(job)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": job.namespace}}

    def evict():
        job.cluster.kubectl("create", "--raw", "/api/v1/namespaces/%s/pods/%s/eviction" % (job.namespace, name), "-f", "-",
                            stdin=json.dumps(eviction))

    story = replaced(job, tell, epoch, "Eviction API", evict, name)
    assert "PodDrained" in story.events and "WorkerLost" not in story.events


def test_a_drained_node(digits, tell):
    job = digits(elastic={"minReplicas": 4})  # the budget allows no eviction before a replacement is in the ring
    epoch = job.wait_bootstrapped(4)
    _, pod = a_pod(job)
    node = pod["spec"]["nodeName"]
    leaving = [name for name, each in job.pods().items() if each["spec"]["nodeName"] == node]
    story = Story(job, job.audit, "`kubectl drain NODE` with `replicas` = `minReplicas`")
    try:
        job.cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s")
        job.wait_world(4, after_epoch=epoch)
        job.wait_steps(5)
        story.over()
        assert len(story.pods_after - story.pods_before) == len(leaving)
        assert "BelowMinReplicas" not in story.events, "a pod was evicted before another had its place"
        assert not [pod for pod in job.pods().values() if pod["spec"].get("nodeName") == node]
    finally:
        job.cluster.kubectl("uncordon", node)
    job.finish()
    tell(story, 4)


def test_a_worker_is_lost_while_no_operator_runs(digits, tell):
    job = digits()
    epoch = job.wait_bootstrapped(4)
    story = Story(job, job.audit, "the operator is away, then `kill -9` of a worker's process")
    job.cluster.scale_operator(0)
    try:
        job.kill_worker("digits-worker-2")
        job.cluster.wait("a view with it again", lambda: story.whole_again(4))
        job.wait_steps(5)
        assert job.status["epoch"] == epoch, "nobody is there to write the status"
    finally:
        job.cluster.scale_operator(2)
    job.wait_world(4, after_epoch=epoch + 1)
    story.over()
    job.finish()
    tell(story, 4)


def test_scaling_up_and_down(digits, tell):
    job = digits(replicas=2)
    epoch = job.wait_bootstrapped(2)
    story = Story(job, job.audit, "`kubectl scale` from 2 to 4")
    job.scale(4)
    epoch = job.wait_world(4, after_epoch=epoch)
    job.wait_steps(5)
    story.over()
    tell(story, 4)
    story = Story(job, job.audit, "`kubectl scale` from 4 to 3")
    job.scale(3)
    job.wait_world(3, after_epoch=epoch)
    job.wait_steps(5)
    story.over()
    job.finish()
    tell(story, 3)
