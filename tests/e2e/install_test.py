"""Installing what hack/release packs on an empty cluster, and everything after: helm test, rights, upgrade, rollback, kustomize, uninstalling.

The tests stand in the order in which they run. Whatever was installed before is removed first, and the operator is there again
afterwards, for the other files.
"""
import json

import pytest

from harness import JOB, RELEASE, REPOSITORY, SYSTEM, Job, condition

OPERATOR = "ringmaster-operator"
ACCOUNT = "system:serviceaccount:%s:%s" % (SYSTEM, OPERATOR)
FINALIZER = "ringmaster.dev/proof-of-death"


@pytest.fixture(scope="module", autouse=True)
def restricted(cluster):
    """A cluster without operator and definition; the namespace enforces the strictest Pod Security Standard."""
    cluster.helm("uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--ignore-not-found")
    cluster.kubectl("delete", "crd", JOB, "--ignore-not-found")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": SYSTEM, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    cluster.install_operator()
    yield
    cluster.install_operator()


def replicas(cluster):
    """The operator's pods, without those that end."""
    return [pod for pod in cluster.list("pods", "app.kubernetes.io/component=operator", namespace=SYSTEM)
            if "deletionTimestamp" not in pod["metadata"]]


def leader(cluster):
    """The one pod that wears the leader's label and holds the lease, or None."""
    lease = cluster.get("lease", OPERATOR, SYSTEM) or {}
    holder = lease.get("spec", {}).get("holderIdentity") or ""
    marked = [pod["metadata"]["name"] for pod in replicas(cluster)
              if pod["metadata"]["labels"].get("ringmaster.dev/leader") == "true"]
    return marked[0] if len(marked) == 1 and marked[0] in holder else None


def served(cluster):
    """Names of the pods behind the Service that sidecars dial."""
    slices = cluster.list("endpointslices", "kubernetes.io/service-name=" + OPERATOR, namespace=SYSTEM)
    return [e["targetRef"]["name"] for s in slices for e in s.get("endpoints") or [] if e["conditions"].get("ready")]


def sleeper(name):
    """A job whose workers never call init(): pods that are there, and nothing more."""
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": name},
            "spec": {"elasticPolicy": {"minReplicas": 1}, "worker": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "worker", "image": "docker.io/library/debian:bookworm-slim", "imagePullPolicy": "IfNotPresent",
                 "command": ["sleep", "600"]}]}}}}}


def test_two_replicas_run_on_two_nodes_and_one_leads(cluster):
    pods = replicas(cluster)
    assert len(pods) == 2 and all(condition(pod, "Ready") == "True" for pod in pods)
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    name = cluster.wait("a leader", lambda: leader(cluster))
    cluster.wait("the Service to have the leader alone", lambda: served(cluster) == [name])


def test_helm_test_passes(cluster):
    done = cluster.helm("test", RELEASE, "--namespace", SYSTEM, "--timeout", "2m", check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_operator_may_what_it_needs_and_no_more(cluster):
    def may(*words):
        return cluster.kubectl("auth", "can-i", *words, "--as", ACCOUNT, check=False).stdout.strip() == "yes"
    for words in (["create", "pods", "-n", "default"], ["patch", "horovodjobs", "-n", "default"],
                  ["update", "horovodjobs", "--subresource=status", "-n", "default"], ["list", "nodes"],
                  ["get", "secrets", "-n", "default"], ["update", "leases", "-n", SYSTEM]):
        assert may(*words) == (words[:2] != ["patch", "horovodjobs"]), words
    for words in (["list", "secrets", "-n", "default"], ["delete", "secrets", "-n", "default"], ["patch", "nodes"],
                  ["create", "pods", "--subresource=exec", "-n", "default"], ["get", "pods", "--subresource=log", "-n", "default"],
                  ["update", "leases", "-n", "default"], ["create", "clusterroles"], ["create", "deployments", "-n", "default"]):
        assert not may(*words), words


def test_a_job_gets_its_pods_and_nothing_that_the_operator_does_is_forbidden(cluster):
    cluster.apply(sleeper("first"))
    job = Job(cluster, "first")
    cluster.wait("two pods", lambda: len(job.pods()) == 2)
    cluster.wait("containers that run", lambda: all(
        any("running" in state["state"] for state in pod["status"].get("containerStatuses", []))
        for pod in job.pods().values()))
    for pod in replicas(cluster):
        log = cluster.kubectl("logs", "-n", SYSTEM, pod["metadata"]["name"])
        refused = [line for line in log.splitlines() if "forbidden" in line.lower() or "right is missing" in line]
        assert not refused, refused[:5]


def test_when_the_leader_is_deleted_the_other_leads_and_the_service_follows(cluster):
    before = cluster.wait("a leader", lambda: leader(cluster))
    cluster.kubectl("delete", "pod", before, "-n", SYSTEM, "--wait=false")
    after = cluster.wait("another leader", lambda: leader(cluster) not in (None, before) and leader(cluster))
    cluster.wait("the Service to have the new leader alone", lambda: served(cluster) == [after])
    cluster.apply(sleeper("second"))
    job = Job(cluster, "second")
    cluster.wait("pods made by the new leader", lambda: len(job.pods()) == 2)
    job.delete()


def test_an_upgrade_replaces_the_pods_and_a_rollback_brings_them_back(cluster):
    def arguments():
        return cluster.get("deployment", OPERATOR, SYSTEM)["spec"]["template"]["spec"]["containers"][0]["args"]
    pods = {pod["metadata"]["uid"] for pod in Job(cluster, "first").pods().values()}
    cluster.install_operator("--reuse-values", "--set", "log.level=debug")
    assert "--log-level=debug" in arguments()
    cluster.wait("a leader after the upgrade", lambda: leader(cluster))
    cluster.helm("rollback", RELEASE, "1", "--namespace", SYSTEM, "--wait", "--timeout", "3m")
    assert "--log-level=info" in arguments()
    cluster.wait("a leader after the rollback", lambda: leader(cluster))
    assert {pod["metadata"]["uid"] for pod in Job(cluster, "first").pods().values()} == pods, "the job's pods are not touched"


def test_a_configuration_file_is_read(cluster):
    cluster.install_operator("--reuse-values", "--set", "config.leaseDurationSeconds=17")
    cluster.wait("a leader", lambda: leader(cluster))
    cluster.wait("its lease", lambda: cluster.get("lease", OPERATOR, SYSTEM)["spec"]["leaseDurationSeconds"] == 17)


def test_an_unknown_value_is_refused_before_anything_happens(cluster):
    done = cluster.helm("upgrade", RELEASE, str(cluster.chart), "--namespace", SYSTEM, "--set", "replica=3", check=False)
    assert done.returncode != 0 and "additional properties 'replica' not allowed" in done.stdout + done.stderr


@pytest.mark.parametrize("folder", ["base", "overlays/example"])
def test_the_api_server_accepts_what_kustomize_builds(cluster, folder):
    text = cluster.kubectl("kustomize", str(REPOSITORY / "deploy/kustomize" / folder))
    # Its Namespace would have to be there for the rest, and monitors have no definition here.
    kept = [part for part in text.split("\n---\n") if "\nkind: PrometheusRule\n" not in "\n" + part
            and "\nkind: Namespace\n" not in "\n" + part]
    text = "\n---\n".join(kept).replace("namespace: training-system", "namespace: " + SYSTEM)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)


def test_uninstalling_leaves_the_jobs_and_no_pod_that_can_not_be_deleted(cluster):
    job = Job(cluster, "first")
    assert len(job.pods()) == 2
    cluster.uninstall_operator()
    assert not cluster.list("pods", "app.kubernetes.io/instance=" + RELEASE, namespace=SYSTEM)
    left = json.loads(cluster.kubectl("get", "clusterroles,clusterrolebindings", "-l",
                                      "app.kubernetes.io/instance=" + RELEASE, "-o", "json"))["items"]
    assert not left, [each["metadata"]["name"] for each in left]
    assert cluster.get("crd", JOB, namespace="") and job.object, "the definition and the jobs stay"
    pods = job.pods()
    assert len(pods) == 2 and not any(FINALIZER in pod["metadata"].get("finalizers", []) for pod in pods.values())
    job.delete()
    cluster.wait("the job's pods to go", lambda: not job.pods())


def test_installing_again_takes_the_definition_over(cluster):
    cluster.install_operator()
    cluster.wait("a leader", lambda: leader(cluster))
    cluster.uninstall_operator()
    cluster.kubectl("delete", "crd", JOB)
