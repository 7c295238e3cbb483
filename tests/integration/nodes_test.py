"""Nodes that are to go, on the embedded cluster: its API is used as kubectl would use it."""

import base64
import json
import ssl
import sys
import urllib.request

import pytest

from elastic_test import Job, check, read_logs
from harness import wait_for


class Api:
    """The API server of a run."""

    def __init__(self, run):
        config = json.loads((run.dir / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        self.server = cluster["server"]
        self.token = config["users"][0]["user"]["token"]
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())

    def call(self, method, path, body=None, kind="application/merge-patch+json"):
        request = urllib.request.Request(self.server + path, method=method, headers={
            "Authorization": "Bearer " + self.token, "Content-Type": kind if method == "PATCH" else "application/json"},
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, context=self.tls, timeout=30) as answer:
            return json.load(answer)

    def add_node(self, name):
        node = self.call("GET", "/api/v1/nodes/local-0")
        node["metadata"] = {"name": name, "labels": dict(node["metadata"]["labels"], **{"kubernetes.io/hostname": name})}
        self.call("POST", "/api/v1/nodes", node)
        self.call("PATCH", "/api/v1/nodes/%s/status" % name, {"status": node["status"]})

    def cordon(self, node, on=True):
        self.call("PATCH", "/api/v1/nodes/" + node, {"spec": {"unschedulable": on}})

    def pods(self):
        return {pod["metadata"]["name"]: pod for pod in self.call("GET", "/api/v1/namespaces/default/pods")["items"]}

    def delete_pod(self, name, grace=None):
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        self.call("DELETE", "/api/v1/namespaces/default/pods/" + name, body)


def on(pods, node):
    return sorted(name for name, pod in pods.items() if pod["spec"].get("nodeName") == node)


def test_a_cordoned_node_is_left_without_a_step_lost_at_min_replicas(write, tmp_path):
    with Job(write, tmp_path, 2, elasticPolicy__minReplicas=2) as job:
        epoch = job.world(2)
        api = Api(job.run)
        api.add_node("local-1")
        api.cordon("local-0")
        wait_for("all pods on the other node", lambda: len(on(api.pods(), "local-1")) == 2 and not on(api.pods(), "local-0"),
                 alive=job.run.alive)
        job.world(2, epoch)
        summary = job.finish()
        reasons = job.reasons(summary)
        assert "PodDrained" in reasons and "PodLost" not in reasons and "WorkerLost" not in reasons, reasons
        assert all(view["worldSize"] >= 2 for view in summary["views"]), summary["views"]


def test_a_cordon_without_room_elsewhere_takes_nobody_away(write, tmp_path):
    with Job(write, tmp_path, 2, elasticPolicy__minReplicas=2) as job:
        epoch = job.world(2)
        api = Api(job.run)
        api.cordon("local-0")
        wait_for("pods that wait for a node", lambda: len(api.pods()) == 4, alive=job.run.alive)
        job.steps_on(20)
        api.cordon("local-0", False)
        wait_for("the surplus to go", lambda: len(api.pods()) == 2, alive=job.run.alive)
        job.world(2)
        # The pods that waited may have come to run before they were taken away; nobody was lost for it.
        reasons = set(job.reasons(job.finish()))
        assert reasons <= {"Bootstrap", "PodJoined", "PodDrained"}, reasons
        assert epoch


def test_a_pod_that_is_deleted_by_force_is_replaced_and_goes_when_it_is_proven_dead(write, tmp_path):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        api = Api(job.run)
        pod = api.pods()["job-worker-2"]
        assert pod["metadata"]["finalizers"] == ["ringmaster.dev/proof-of-death"]
        assert pod["metadata"]["annotations"]["ringmaster.dev/boot"].endswith(" local-0 local-0")
        api.delete_pod("job-worker-2", grace=0)
        wait_for("the pod to go", lambda: "job-worker-2" not in api.pods(), alive=job.run.alive)
        job.world(3, epoch + 1)
        job.finish()


@pytest.mark.parametrize("grace", [None, 2, 1])
def test_a_pod_that_is_deleted_with_grace_leaves_by_plan(write, tmp_path, grace):
    with Job(write, tmp_path, 3) as job:
        epoch = job.world(3)
        api = Api(job.run)
        for victim in (job.run.coordinator("job")["name"], "job-worker-2"):
            uid = api.pods()[victim]["metadata"]["uid"]
            api.delete_pod(victim, grace)
            wait_for("the pod to go", lambda: api.pods().get(victim, {}).get("metadata", {}).get("uid") != uid,
                     alive=job.run.alive)
            epoch = job.world(3, epoch + 1)
        reasons = job.reasons(job.finish())
        assert set(reasons) <= {"Bootstrap", "PodJoined", "PodDrained"} and reasons.count("PodDrained") == 2, reasons


def test_pods_that_are_all_deleted_hand_the_state_on(write, tmp_path):
    with Job(write, tmp_path, 2, elasticPolicy__minReplicas=1, worker__template__spec__terminationGracePeriodSeconds=120) as job:
        epoch = job.world(2)
        api = Api(job.run)
        first = {pod["metadata"]["uid"] for pod in api.pods().values()}
        for name in sorted(api.pods()):
            api.delete_pod(name)
        wait_for("the deleted pods to go", lambda: not first & {pod["metadata"]["uid"] for pod in api.pods().values()}, alive=job.run.alive)
        job.world(2, epoch + 1)
        reasons = job.reasons(job.finish())
        assert set(reasons) <= {"Bootstrap", "PodJoined", "PodDrained"}, reasons
        assert "again from the checkpoint" not in job.run.text()


def test_pods_that_are_all_deleted_and_find_no_successor_leave_at_the_same_step(write, tmp_path):
    # Steps so long that both pods are deleted within one.
    with Job(write, tmp_path, 2, options=("--sleep-ms", "1000"), elasticPolicy__minReplicas=1,
             worker__template__spec__terminationGracePeriodSeconds=10) as job:
        job.world(2)
        api = Api(job.run)
        pods = api.pods()
        first = {pod["metadata"]["uid"] for pod in pods.values()}
        (tmp_path / "closed").touch()  # those that come don't join
        job.steps_on(1)
        for name in pods:
            api.delete_pod(name)
        wait_for("the deleted pods to go", lambda: not first & {pod["metadata"]["uid"] for pod in api.pods().values()}, alive=job.run.alive)
        last = [lines[-1].step for lines in read_logs(tmp_path).values() if lines]
        assert len(last) == 2 and len(set(last)) == 1, last
        ends = [(job.run.dir / "logs" / name / "ringmaster-sidecar.log").read_text() for name in pods]
        assert all("left by plan" in end for end in ends), ends  # none was stopped within a step


def test_the_pods_of_a_deleted_job_leave_after_a_step(write, tmp_path):
    # A grace period longer than this test waits for anything.
    with Job(write, tmp_path, 2, worker__template__spec__terminationGracePeriodSeconds=600) as job:
        job.world(2)
        Api(job.run).call("DELETE", "/apis/ringmaster.dev/v1alpha1/namespaces/default/horovodjobs/job")
        assert job.run.wait() != 0
        check(tmp_path)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
