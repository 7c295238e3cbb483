"""Nodes that lose power, come back, are cut off, and devices that fail, under a training job."""
import pytest

from handle import condition
from story import Story

# A pod on each of the three nodes where there is room, so that two of three can decide without the third.
APART = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                                        "labelSelector": {"matchLabels": {"training.kubeflow.org/job-name": "digits"}}}]}
REPLACED = 100  # seconds: a node is silent for 15 before it counts as lost, then a pod has to start; the machine is shared


@pytest.fixture
def apart(digits):
    """A job of three workers on three nodes, training; and its epoch."""
    job = digits(replicas=3, epochs=110, pace_ms=100, pod=APART)
    epoch = job.wait_bootstrapped(3)
    assert len({pod["spec"]["nodeName"] for pod in job.pods().values()}) == 3
    return job, epoch


@pytest.fixture
def repaired(operator):
    """After the test all nodes are as they were."""
    yield
    for node in ("n1", "n2", "n3"):
        operator.kubectl("taint", "node", node, "node.kubernetes.io/out-of-service-", check=False)
        operator.run("gpu-healthy", node, check=False)
        operator.run("heal", node, check=False)
        operator.run("boot", node, check=False)
    operator.wait("three nodes are Ready", lambda: operator.nodes_ready() == ["n1", "n2", "n3"])


def node_of(job, pod):
    return job.pods()[pod]["spec"]["nodeName"]


def living(job):
    return [name for name, pod in job.pods().items() if "deletionTimestamp" not in pod["metadata"]]


def lost_and_replaced(job, epoch, tell, what, act):
    """act() makes one of three pods silent: the others train on without it, and with another one when its node counts as lost."""
    story = Story(job, job.audit, what)
    act()
    epoch = job.wait("two train on", lambda s: s.get("epoch", 0) > epoch and s)["epoch"]
    job.wait_steps(5)
    job.wait_world(3, after_epoch=epoch, seconds=REPLACED)
    job.wait_steps(5)
    story.over()
    tell(story, 3)
    return story


def test_a_worker_s_node_crashes_and_boots(apart, tell, repaired):
    job, epoch = apart
    victim = max(job.pods())
    node = node_of(job, victim)
    lost_and_replaced(job, epoch, tell, "power cut of a worker's node", lambda: job.cluster.run("crash", node))
    assert victim in job.pods(), "nothing proves its death yet"
    job.cluster.run("boot", node)
    # Another boot of the node is the proof; or its kubelet comes first and says how the containers ended.
    job.cluster.wait("the pod that died with the node is gone", lambda: victim not in job.pods())
    job.finish()


def test_the_coordinator_s_node_crashes_and_is_put_out_of_service(apart, tell, repaired):
    job, epoch = apart
    victim = min(job.pods())
    node = node_of(job, victim)
    lost_and_replaced(job, epoch, tell, "power cut of the coordinator's node", lambda: job.cluster.run("crash", node))
    job.cluster.kubectl("taint", "node", node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    job.cluster.wait("the pod is gone, as the taint is proof", lambda: victim not in job.pods())
    job.finish()


@pytest.mark.parametrize("whose, choose", [("a worker's", max), ("the coordinator's", min)], ids=["worker", "coordinator"])
def test_a_node_is_cut_off_and_comes_back(apart, tell, repaired, whose, choose):
    job, epoch = apart
    victim = choose(job.pods())
    node = node_of(job, victim)
    uid = job.pods()[victim]["metadata"]["uid"]
    lost_and_replaced(job, epoch, tell, "%s node is cut off" % whose, lambda: job.cluster.run("partition", node))
    assert job.pods()[victim]["metadata"]["uid"] == uid, "it may train for all anybody knows: it is not to be deleted by us"
    job.cluster.run("heal", node)
    job.cluster.wait("three pods, the surplus has left", lambda: len(living(job)) == 3 and len(job.pods()) == 3)
    job.wait("three train", lambda s: s.get("worldSize") == 3)
    job.wait_steps(5)
    job.finish()


def lose_two_of_three(job, what):
    """Two nodes lose power at once, so that the third can't know whether the others train. Returns the story and the dead nodes."""
    story = Story(job, job.audit, what)
    operators = {pod["spec"]["nodeName"] for pod in job.cluster.operator_pods() if condition(pod, "Ready") == "True"}
    survivor = [name for name in sorted(job.pods()) if node_of(job, name) in operators][-1]
    nodes = [node_of(job, name) for name in job.pods() if name != survivor]
    job.cluster.run("crash", *nodes)
    return story, nodes


def whole_after_quorum_loss(job, epoch, tell, story):
    job.wait_world(3, after_epoch=epoch, seconds=REPLACED)
    job.wait_steps(5)
    story.over()
    assert "QuorumRecovered" in story.events
    job.finish()
    tell(story, 3)


def test_two_of_three_nodes_lose_power_and_one_decides_with_proof(apart, tell, repaired):
    job, epoch = apart
    story, nodes = lose_two_of_three(job, "power cut of two of three nodes at once, then the taint `out-of-service`")
    job.wait("the condition that names the pods waited for", lambda s: any(c["type"] == "Rebuilding" and c.get("reason") == "WaitingForProof"
                                                for c in s.get("conditions", [])))
    for node in nodes:
        job.cluster.wait("the node counts as lost", lambda: node not in job.cluster.nodes_ready())
        job.cluster.kubectl("taint", "node", node, "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
    whole_after_quorum_loss(job, epoch, tell, story)


def test_a_job_that_may_fork_waits_for_no_proof(digits, tell, repaired):
    job = digits(replicas=3, epochs=110, pace_ms=100, pod=APART, elastic={"onQuorumLoss": "RestartFromCheckpoint", "minReplicas": 1})
    epoch = job.wait_bootstrapped(3)
    story, _ = lose_two_of_three(job, "the same with `onQuorumLoss: RestartFromCheckpoint`, no taint")
    whole_after_quorum_loss(job, epoch, tell, story)
    assert "ForkPossible" in story.events


def test_gpus_that_fail_are_left_alone_until_a_pod_needs_another(digits, operator, repaired):
    job = digits(replicas=3, pod=APART, epochs=80, pace_ms=100, container={"resources": {"limits": {"nvidia.com/gpu": 1}}})
    epoch = job.wait_bootstrapped(3)
    victim = max(job.pods())
    node, before = node_of(job, victim), set(job.pods())
    operator.run("gpu-unhealthy", node, *range(4))
    operator.wait("the node offers no GPU", lambda: operator.get("node", node)["status"]["allocatable"].get("nvidia.com/gpu") == "0")
    job.wait_steps(10)
    assert job.status["epoch"] == epoch, "a device that is said to be ill takes nothing from a process that runs"
    operator.kubectl("delete", "pod", victim, "--wait=false")
    job.wait_world(3, after_epoch=epoch + 1)
    assert node not in {pod["spec"]["nodeName"] for name, pod in job.pods().items() if name not in before}
    job.finish()
