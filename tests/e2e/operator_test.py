"""The operator as its chart installs it."""
import json

from handle import condition
from harness import JOB, RELEASE, SYSTEM


def leaders(cluster):
    return [pod["metadata"]["name"] for pod in cluster.operator_pods()
            if pod["metadata"]["labels"].get("ringmaster.dev/leader") == "true" and condition(pod, "Ready") == "True"]


def wait_leader(cluster, but=None):
    """The name of the one leading replica, once it is another than `but`."""
    def the_one():
        found = leaders(cluster)
        return found[0] if len(found) == 1 and found != [but] else None

    return cluster.wait("one leading replica" + (" other than %s" % but if but else ""), the_one)


def test_two_replicas_are_ready_on_two_nodes_and_one_leads(operator):
    pods = operator.operator_pods()
    assert [condition(pod, "Ready") for pod in pods] == ["True", "True"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"n1", "n2"}
    wait_leader(operator)


def test_helm_test_finds_the_operator_well(operator):
    operator.helm("test", RELEASE, "--namespace", SYSTEM, "--timeout", "2m")


def test_another_replica_leads_when_the_leader_is_killed(operator):
    first = wait_leader(operator)
    operator.kubectl("delete", "pod", "-n", SYSTEM, first, "--grace-period=0", "--force")
    wait_leader(operator, but=first)
    operator.wait("two replicas again", lambda: [condition(pod, "Ready") for pod in operator.operator_pods()] == ["True", "True"])


def test_a_job_with_a_wrong_field_is_refused_by_the_api_server(operator):
    job = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": "wrong"},
           "spec": {"worker": {"replicas": -1, "template": {"spec": {"containers": [{"name": "worker", "image": "x"}]}}}}}
    done = operator.run("kubectl", "apply", "-f", "-", check=False, stdin=json.dumps(job))
    assert done.returncode != 0 and "spec.worker.replicas" in done.stderr, done.stdout + done.stderr
    assert operator.get(JOB, "wrong") is None
