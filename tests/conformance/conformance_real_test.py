"""The tests of the API and of what stands on it (clients, caches, election, controllers), on the embedded server and on a real
one: the same tests pass on both, none is skipped.

The real one is etcd, kube-apiserver and kube-controller-manager (garbage collection, namespaces, disruption budgets), started here
on free ports; or the cluster of the kubeconfig that $KUBE_CONFORMANCE_KUBECONFIG names.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "crd"))
import apiserver  # noqa: E402

PROGRAMS = [pathlib.Path(one) for one in os.environ.get("RINGMASTER_CONFORMANCE_TESTS", "").split(":") if one]
# Most of what they do is wait for controllers, each in a namespace of its own.
AT_ONCE = 4
KUBECONFIG = "KUBE_CONFORMANCE_KUBECONFIG"
SKIPPED = 77


class ControlPlane(apiserver.ApiServer):
    """An API server with the controllers that finish what it begins."""

    def start(self, etcd, kube_apiserver):
        controllers = apiserver.find("kube-controller-manager")
        super().start(etcd, kube_apiserver)
        self.spawn("kube-controller-manager",
                   [controllers, "--kubeconfig", self.kubeconfig(), "--service-account-private-key-file", self.dir / "sa.key",
                    "--secure-port", "0", "--leader-elect=false"])
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait_until("the controllers work", lambda: self.request("GET", account)[0] == 200)

    def install_kueue(self):
        """Kueue's kinds as its module has them: what the operator writes is judged by the schema that it meets there."""
        kinds = pathlib.Path(apiserver.find("kube-apiserver")).parents[1] / "kueue-kinds.yaml"
        assert kinds.exists(), "%s is missing: tests/cluster/cluster build kueue" % kinds
        for kind in filter(None, yaml.safe_load_all(kinds.read_text())):  # some documents of the file are empty
            status, answer = self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind)
            assert status == 201, answer
            path = "/apis/kueue.x-k8s.io/v1beta2/" + kind["spec"]["names"]["plural"]
            self.wait_until("%s are served" % path, lambda path=path: self.request("GET", path)[0] == 200)


@pytest.fixture(scope="module")
def kubeconfig():
    if os.environ.get(KUBECONFIG):
        yield os.environ[KUBECONFIG]
        return
    try:
        plane = ControlPlane()
    except apiserver.Missing as missing:
        required = os.environ.get("REQUIRE_CLUSTER") == "1"
        pytest.exit("%s: no real API server: %s" % ("FAILED (REQUIRE_CLUSTER=1)" if required else "SKIPPED", missing),
                    returncode=1 if required else SKIPPED)
    try:
        plane.install_kueue()
        yield str(plane.kubeconfig())
    finally:
        plane.stop()


def run(tmp_path, program, server, config):
    """Outcome by test name: {"KubeConformance.CreateFillsInIdentity": "passed", ...}."""
    report = tmp_path / ("%s-%s.json" % (program.name, server))
    environment = dict(os.environ)
    environment.pop(KUBECONFIG, None)
    if config:
        environment[KUBECONFIG] = config
    done = subprocess.run([program, "--gtest_filter=*/" + server, "--gtest_output=json:%s" % report, "--gtest_brief=1"],
                          env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500)
    assert report.exists(), "no report of %s on the %s server:\n%s%s" % (program.name, server, done.stdout[-3000:],
                                                                         done.stderr[-3000:])
    outcomes = {}
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            name = suite["name"].split("/")[-1] + "." + test["name"].rsplit("/", 1)[0]
            failures = "\n".join(failure["failure"] for failure in test.get("failures", []))
            outcomes[name] = failures or ("passed" if test["result"] == "COMPLETED" else test["result"])
    assert outcomes, "%s has no tests for the %s server" % (program.name, server)
    return outcomes


def run_all(tmp_path, server, config):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = {}
        for of_one in pool.map(lambda program: run(tmp_path, program, server, config), PROGRAMS):
            assert not outcomes.keys() & of_one.keys(), "a test's name stands twice: %s" % (outcomes.keys() & of_one.keys())
            outcomes.update(of_one)
        return outcomes


def test_both_servers_pass_the_same_tests(kubeconfig, tmp_path):
    embedded = run_all(tmp_path, "Embedded", None)
    real = run_all(tmp_path, "Real", kubeconfig)
    assert len(embedded) > 140, "the suite has lost its tests: %s" % sorted(embedded)
    wrong = ["%s on the %s server: %s" % (name, server, outcome)
             for server, outcomes in (("embedded", embedded), ("real", real))
             for name, outcome in sorted(outcomes.items()) if outcome != "passed"]
    assert not wrong, "%d tests did not pass:\n%s" % (len(wrong), "\n".join(wrong))
    assert sorted(embedded) == sorted(real)
