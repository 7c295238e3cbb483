"""What happens to the operator, and what it never gets to see. install_test.py has its installation."""
import json
import re

from handle import condition
from harness import JOB, REPOSITORY, SYSTEM


def leaders(cluster):
    return [pod["metadata"]["name"] for pod in cluster.operator_pods()
            if pod["metadata"]["labels"].get("ringmaster.dev/leader") == "true" and condition(pod, "Ready") == "True"]


def wait_leader(cluster, but=None):
    """The name of the one leading replica, once it is another than `but`."""
    def the_one():
        found = leaders(cluster)
        return found[0] if len(found) == 1 and found != [but] else None

    return cluster.wait("one leading replica" + (" other than %s" % but if but else ""), the_one)


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


def test_what_the_page_on_the_api_shows_of_a_refusal_is_what_kubectl_prints(operator):
    page = (REPOSITORY / "docs/api.md").read_text()
    of_rules, of_fields = re.findall(r"\$ kubectl apply -f job\.yaml\n(.*)\n", page)
    container = {"name": "worker", "image": "x", "command": ["true"]}
    job = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": "digits"},
           "spec": {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 8}, "worker": {"replicas": 9, "template": {"spec": {"containers": [container]}}}}}
    done = operator.run("kubectl", "apply", "-f", "-", check=False, stdin=json.dumps(job))
    assert done.returncode != 0 and done.stderr.strip() == of_rules
    job["spec"]["worker"]["replicas"] = 2
    container["comand"] = container.pop("command")
    done = operator.run("kubectl", "apply", "-f", "-", check=False, stdin=json.dumps(job))
    begins, ends = of_fields.split(" ... ")
    assert done.returncode != 0 and done.stderr.startswith(begins) and done.stderr.strip().endswith(ends), done.stderr
    assert operator.get(JOB, "digits") is None
