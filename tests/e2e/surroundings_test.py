"""What goes wrong around a job on a real cluster: images, room, quota, admission, the API server, the way to it, the namespace.

Each trouble is said by a condition and an event, costs the API server little however long it lasts, and ends when its cause does.
The tests stand in the order in which they run: first eight jobs that can't start, then one that trains through everything.
"""
import json
import pathlib
import re
import shutil
import subprocess
import time

import pytest

from digits_job import judge, trainer_image
from harness import JOB, SYSTEM, Job
from operator_test import wait_leader
from story import newest_step

NO_IMAGE = "registry.invalid/team/trainer:7"
POLICY = "e2e-refuses-pods"
HOOK = "e2e-dead-webhook"
API = "10.96.0.1"
LONG = "e2e-long"
WORKERS = "training.kubeflow.org/job-name=digits"


# Jobs that can't start.


def tiny(image=None, gpus=0, selector=None, volume=None, replicas=1, env=(), **pod):
    """A job that trains for some seconds, once it can."""
    worker = {"name": "worker", "image": image or trainer_image(), "command": ["python3", "train.py"],
              "env": [{"name": "DIGITS_EPOCHS", "value": "1"}, {"name": "OMP_NUM_THREADS", "value": "1"}, *env]}
    if gpus:
        worker["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    if selector:
        pod["nodeSelector"] = selector
    if volume:
        worker["volumeMounts"] = [{"name": "settings", "mountPath": "/settings"}]
        pod["volumes"] = [{"name": "settings", **volume}]
    return {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": "digits"},
            "spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}, "worker": {"replicas": replicas, "template": {
                "spec": {"terminationGracePeriodSeconds": 5, "containers": [worker], **pod}}}}}


def quota(**hard):
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight"}, "spec": {"hard": hard}}


# name (and namespace, after e2e-): the job, what is in its way there, what its condition says, what its event says
TROUBLES = {
    "image": (tiny(image=NO_IMAGE), [], ("Started", "ImagePullFailed", [NO_IMAGE, "digits-worker-0"]), "ImagePullFailed"),
    "volume": (tiny(volume={"configMap": {"name": "not-yet"}}), [],
               ("Started", "VolumeNotMounted", ["digits-worker-0", 'configmap "not-yet" not found']), "VolumeNotMounted"),
    "gpus": (tiny(gpus=100), [], ("Scheduled", "WaitingForRoom", ["Insufficient nvidia.com/gpu"]), "WaitingForRoom"),
    "selector": (tiny(selector={"e2e-pool": "large"}), [], ("Scheduled", "WaitingForRoom", ["node affinity/selector"]),
                 "WaitingForRoom"),
    "quota": (tiny(), [quota(pods=0)], ("Created", "PodsForbidden", ["exceeded quota: tight"]), "FailedCreate"),
    "record": (tiny(), [quota(**{"count/configmaps": 1})], ("Created", "RecordForbidden", ["exceeded quota: tight"]),
               "FailedRecord"),
    "policy": (tiny(), [], ("Created", "PodsForbidden", [POLICY, "pods want a cost center"]), "FailedCreate"),
    "webhook": (tiny(), [], ("Created", "PodsFailed", ["webhook", "pods.nobody.example"]), "FailedCreate"),
}


def admission():
    """A policy that refuses the pods of one namespace, and a webhook that nobody answers for those of another."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    group = {"apiVersion": "admissionregistration.k8s.io/v1"}

    def only(name):
        return {"matchLabels": {"kubernetes.io/metadata.name": "e2e-" + name}}

    return [
        {**group, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY}, "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "'cost-center' in object.metadata.labels", "message": "pods want a cost center"}]}},
        {**group, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": POLICY}, "spec": {
            "policyName": POLICY, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": only("policy")}}},
        {**group, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": HOOK}, "webhooks": [{
            "name": "pods.nobody.example", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "namespaceSelector": only("webhook"), "rules": [rule],
            "clientConfig": {"service": {"name": "nobody", "namespace": "default"}}}]}]


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def refused(cluster, manifest, where):
    done = cluster.kubectl("create", "--dry-run=server", "-n", where, "-f", "-", check=False, stdin=json.dumps(manifest))
    return done.returncode != 0


def in_force(cluster):
    """Policies, webhooks and quotas count some moments after they were made."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": {"a": "b"}},
           "spec": {"containers": [{"name": "main", "image": "none"}]}}
    for name in ("policy", "webhook", "quota"):
        cluster.wait("refusals in e2e-" + name, lambda: refused(cluster, pod, "e2e-" + name))
    cluster.wait("the quota of e2e-record", lambda: (cluster.get("quota", "tight", "e2e-record") or {}).get("status", {}).get(
        "used", {}).get("count/configmaps") == "1")


@pytest.fixture(scope="module")
def troubles(operator):
    """{name: Job}, all in trouble."""
    jobs = {name: Job(operator, "digits", "e2e-" + name) for name in TROUBLES}
    try:
        operator.apply(*map(namespace, (job.namespace for job in jobs.values())))
        operator.wait("the namespaces' own ConfigMaps", lambda: all(
            operator.get("configmap", "kube-root-ca.crt", job.namespace) for job in jobs.values()))
        for name, job in jobs.items():
            for each in TROUBLES[name][1]:
                operator.apply(each, namespace=job.namespace)
        for each in admission():
            operator.apply(each)
        in_force(operator)
        for name, job in jobs.items():
            operator.apply(TROUBLES[name][0], namespace=job.namespace)
        yield jobs
    finally:
        operator.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", POLICY, "--ignore-not-found")
        operator.kubectl("delete", "validatingwebhookconfiguration", HOOK, "--ignore-not-found")
        operator.kubectl("delete", "namespace", "--ignore-not-found", *(job.namespace for job in jobs.values()))
        operator.kubectl("label", "node", "n1", "e2e-pool-", check=False)


class Calls:
    """Calls of the API server by the leading replica, as it counts them itself; its lease is left out."""

    LINE = re.compile(r'ringmaster_operator_api_request_seconds_count\{(.*)\} (\S+)')

    def __init__(self, cluster):
        self.cluster = cluster
        self.pod = wait_leader(cluster)
        self.before = self.read()

    def read(self):
        text = self.cluster.kubectl("get", "--raw", "/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics" % (SYSTEM, self.pod))
        found = {labels: float(count) for labels, count in self.LINE.findall(text)}
        assert found, text[:2000]
        return {labels: count for labels, count in found.items() if 'resource="leases"' not in labels}

    def since(self):
        """{labels: calls}"""
        return {labels: count - self.before.get(labels, 0) for labels, count in self.read().items()
                if count != self.before.get(labels, 0)}


@pytest.mark.parametrize("name", TROUBLES)
def test_the_trouble_is_said_by_a_condition_and_an_event(troubles, name):
    job = troubles[name]
    _, _, (kind, reason, words), event = TROUBLES[name]

    def told():
        return [each for each in job.status.get("conditions", []) if each["type"] == kind and each["status"] == "False"
                and each["reason"] == reason and all(word in each["message"] for word in words)]

    job.cluster.wait("condition %s %s with %s" % (kind, reason, words), told)
    job.cluster.wait("event " + event, lambda: [note for said, note in job.cluster.events("digits", job.namespace)
                                                if said == event and all(word in note for word in words[:1])])
    assert job.status["state"] in ("Pending", "Starting"), "nothing is lost, and nothing is wrong with the job itself"


def test_no_trouble_makes_the_operator_turn_round(troubles):
    """Eight jobs in trouble: pauses between tries have grown to ten seconds and more, and no pod comes or goes."""
    cluster = troubles["image"].cluster

    def pods():
        # Of these jobs alone: pods of the tests before may still be going.
        return {pod["metadata"]["uid"] for job in troubles.values() for pod in cluster.list("pods", WORKERS, job.namespace)}

    before = pods()
    calls = Calls(cluster)
    time.sleep(20)  # what is measured is what happens in this time
    made = calls.since()
    print("calls of the API server in 20 s: %s" % made)
    assert sum(made.values()) < 40, "in 20 s: %s" % made
    assert pods() == before


def mend_template(job, path, value):
    """What docs/troubleshooting.md says: a template can be changed while the job is suspended."""
    cluster, where = job.cluster, ("-n", job.namespace)
    cluster.kubectl("patch", JOB, "digits", *where, "--type=merge", "-p", '{"spec":{"runPolicy":{"suspend":true}}}')
    cluster.kubectl("wait", JOB + "/digits", *where, "--for=condition=Suspended", "--timeout=60s")
    cluster.kubectl("patch", JOB, "digits", *where, "--type=json", "-p", json.dumps([
        {"op": "replace", "path": "/spec/worker/template/spec/containers/0" + path, "value": value},
        {"op": "replace", "path": "/spec/runPolicy/suspend", "value": False}]))


@pytest.fixture(scope="module")
def mended(troubles):
    """All causes are taken away at once; nothing is said to the operator."""
    cluster = troubles["image"].cluster
    cluster.kubectl("label", "node", "n1", "e2e-pool=large")
    for name in ("quota", "record"):
        cluster.kubectl("delete", "quota", "tight", "-n", troubles[name].namespace)
    cluster.kubectl("delete", "validatingadmissionpolicybinding", POLICY)
    cluster.kubectl("delete", "validatingwebhookconfiguration", HOOK)
    cluster.kubectl("create", "configmap", "not-yet", "-n", troubles["volume"].namespace)
    mend_template(troubles["image"], "/image", trainer_image())
    mend_template(troubles["gpus"], "/resources/limits", {"nvidia.com/gpu": 1})
    return troubles


@pytest.mark.parametrize("name", TROUBLES)
def test_the_job_goes_on_when_the_cause_is_gone(mended, name):
    status = mended[name].wait_succeeded(240)  # a kubelet tries a volume again every two minutes
    kept = [each for each in status["conditions"] if each["type"] in ("Created", "Scheduled", "Started")]
    assert all(each["status"] == "True" for each in kept), kept
    assert status.get("faults", 0) == 0 and status.get("podsReplaced", 0) == 0, "not the application's fault"


# One job that trains all the while.


@pytest.fixture(scope="module")
def folder(operator):
    folder = pathlib.Path(operator.dir, "shared", LONG)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def training(operator, folder):
    """A job of two workers that trains longer than this file takes, in a namespace of its own."""
    manifest = tiny(replicas=2, volumes=[{"name": "audit", "hostPath": {"path": str(folder)}}])
    worker = manifest["spec"]["worker"]["template"]["spec"]["containers"][0]
    worker["env"] = [{"name": name, "value": value} for name, value in (
        ("DIGITS_EPOCHS", "100000"), ("DIGITS_PACE_MS", "40"), ("OMP_NUM_THREADS", "1"), ("RINGMASTER_AUDIT_DIR", "/audit"))]
    worker["volumeMounts"] = [{"name": "audit", "mountPath": "/audit"}]
    operator.apply(namespace(LONG))
    operator.apply(manifest, namespace=LONG)
    job = Job(operator, "digits", LONG)
    try:
        job.wait_world(2)
        operator.wait("five steps", lambda: newest_step(folder) >= 5)
        yield job
    finally:
        operator.kubectl("delete", "namespace", LONG, "--ignore-not-found", "--timeout=120s")


def scales(job):
    """The operator and everything that it needs work again: from two workers to three, or back."""
    epoch, replicas = job.status["epoch"], 5 - job.status["worldSize"]
    job.scale(replicas)
    job.wait_world(replicas, after_epoch=epoch)


def test_a_job_trains_on_while_the_api_server_restarts(training, folder):
    before = newest_step(folder)
    training.cluster.run("restart-apiserver", "--away", 4)
    assert newest_step(folder) > before + 20, "it doesn't need the API server"
    scales(training)
    wait_leader(training.cluster)


def test_the_operator_goes_on_when_its_token_is_refused_and_replaced(training, folder):
    before = newest_step(folder)
    training.cluster.run("replace-token-key")
    assert newest_step(folder) > before + 20
    training.cluster.wait("a leader", lambda: wait_leader(training.cluster))
    scales(training)


def operator_process(pod):
    """Its process id, as this system sees it."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if (entry / "comm").read_text().startswith("ringmaster-oper") and ("POD_NAME=" + pod).encode() in (
                    entry / "environ").read_bytes().split(b"\0"):
                return entry.name
        except OSError:
            continue
    raise AssertionError("no process of %s was found" % pod)


@pytest.fixture
def silence(training):
    """silence() makes the leader's connections to the API server silent: no packet comes or goes, and no word of it."""
    leader = wait_leader(training.cluster)
    inside = ["nsenter", "-t", operator_process(leader), "-n"]

    def run(*words):
        return subprocess.run([*inside, *words], check=True, capture_output=True, text=True, timeout=30).stdout

    def cut():
        established = run("ss", "-tnH", "state", "established", "dst", API)
        ports = [line.split()[2].rsplit(":", 1)[1] for line in established.splitlines()]
        assert len(ports) > 3, "no watches? " + established
        for port in ports:
            run("iptables", "-w", "-A", "OUTPUT", "-p", "tcp", "-d", API, "--sport", port, "-j", "DROP")
            run("iptables", "-w", "-A", "INPUT", "-p", "tcp", "-s", API, "--dport", port, "-j", "DROP")
        return leader

    yield cut
    run("iptables", "-w", "-F")


def restarts(cluster):
    return {pod["metadata"]["name"]: [each["restartCount"] for each in pod["status"]["containerStatuses"]]
            for pod in cluster.operator_pods()}


def test_the_operator_notices_watches_that_have_gone_silent(training, silence):
    before = restarts(training.cluster)
    leader = silence()
    scales(training)
    assert wait_leader(training.cluster) == leader and restarts(training.cluster) == before, "it went on by itself"


def test_no_step_was_lost_in_all_of_this(training, folder, tmp_path):
    """The checker judges what was trained until an epoch ended; the job goes on meanwhile."""
    begun = newest_step(folder)
    training.cluster.wait("more steps", lambda: newest_step(folder) > begun + 20)
    lines = {log.name: [json.loads(line) for line in log.read_text().split("\n")[:-1]] for log in folder.glob("*.jsonl")}
    ends = [line["step"] for log in lines.values() for line in log if "epoch_end" in line]
    # All three have written the end of the epoch before the last.
    last = sorted(set(ends))[-2]
    for name, log in lines.items():
        kept = [line for line in log if line["step"] <= last]
        if kept:
            (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in kept))
    judge(tmp_path)
    assert training.status["stepsLost"] == 0 and training.status["podsReplaced"] == 0


def test_a_namespace_is_deleted_with_a_job_that_trains(training):
    calls = Calls(training.cluster)
    training.cluster.kubectl("delete", "namespace", LONG, "--timeout=120s")
    made = calls.since()
    refused_calls = sum(count for labels, count in made.items() if 'code="403"' in labels)
    assert refused_calls < 30, "what can't be made in a namespace that goes was asked for again and again: %s" % made
    calls = Calls(training.cluster)
    time.sleep(5)  # what is measured is what happens in this time
    assert sum(calls.since().values()) < 5, "nobody's job is worked on: %s" % calls.since()
