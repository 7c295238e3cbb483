"""HorovodRunner on a real cluster, with the rights that docs/python.md says it needs and no more."""
import json
import os
import re
import subprocess
import sys
import textwrap

import pytest

import harness
import optional
from digits_job import trainer_image
from harness import JOB

optional.module("cloudpickle", for_all=True)

RIGHTS = textwrap.dedent("""
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: notebook}
    rules:
      - {apiGroups: [ringmaster.dev], resources: [horovodjobs], verbs: [create, patch, get, list, watch, delete]}
      - {apiGroups: [""], resources: [secrets], verbs: [create, patch]}
      - {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
      - {apiGroups: [""], resources: [pods/log], verbs: [get]}
""")
LAUNCHES = """
import sys
from ringmaster.runner import HorovodRunner, RankError, log_to_driver

def train(scale, fail=False):
    import helper
    import ringmaster as rm
    rm.init()
    print("rank", rm.rank(), "prints", flush=True)
    log_to_driver("loss %d" % rm.rank())
    if fail and rm.rank() == 1:
        raise KeyError("no such data set")
    return rm.size() * scale + helper.NUMBER, b"x" * (3 << 20)

if __name__ == "__main__":
    place = dict(image=sys.argv[1], pod={"terminationGracePeriodSeconds": 5}, timeout=200)
    value, rest = HorovodRunner(np=2, driver_log_verbosity="all", **place).run(train, scale=10)
    assert value == 21 and len(rest) == 3 << 20
    try:
        HorovodRunner(np=2, **place).run(train, scale=10, fail=True)
    except KeyError as error:
        assert isinstance(error.__cause__, RankError) and error.__cause__.rank == 1
        print("raised again")
"""


@pytest.fixture
def kubeconfig(operator, tmp_path):
    """Of a service account that may do what a notebook must be allowed to do."""
    operator.kubectl("create", "serviceaccount", "notebook")
    operator.kubectl("apply", "-f", "-", stdin=RIGHTS)
    operator.kubectl("create", "rolebinding", "notebook", "--role=notebook", "--serviceaccount=default:notebook")
    config = json.loads(operator.kubectl("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"token": operator.kubectl("create", "token", "notebook").strip()}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    yield str(tmp_path / "kubeconfig")
    for kind in ("rolebinding", "role", "serviceaccount"):
        operator.kubectl("delete", kind, "notebook")


def test_a_function_trains_on_the_cluster_and_nothing_of_it_stays(operator, kubeconfig, tmp_path):
    (tmp_path / "launches.py").write_text(LAUNCHES)
    (tmp_path / "helper.py").write_text("NUMBER = 1\n")
    build = harness.REPOSITORY / "build/release"
    env = dict(os.environ, KUBECONFIG=kubeconfig, PYTHONPATH=str(build / "python"), RINGMASTER_BIN=str(build / "bin"))
    done = subprocess.run(["/usr/bin/python3", "-B", "launches.py", trainer_image()], cwd=tmp_path, env=env, text=True, capture_output=True,
                          timeout=400, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    # The number in front is the pod's; which of them has rank 0 is decided when they have met.
    for said in (r"\[[01]\] rank 0 prints", r"\[[01]\] rank 1 prints", "loss 0", "loss 1", "Succeeded, 2 workers", "raised again"):
        assert re.search(said, done.stdout), done.stdout + done.stderr
    operator.wait("an empty namespace", lambda: not operator.list(JOB) and not [
        secret for secret in operator.list("secrets") if secret["metadata"]["name"].startswith("train-")])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
