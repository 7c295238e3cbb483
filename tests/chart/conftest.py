"""What the tests of charts/ and deploy/ share: the tools, rendering, and the repository's files.

A tool that is missing is a loud skip, or a failure with REQUIRE_CLUSTER=1.
"""

import copy
import functools
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "ringmaster"
NAMESPACE = "ringmaster-system"
# What tests/cluster has built, for machines that have no such tool of their own.
CACHE = os.environ.get("RINGMASTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ringmaster")
BUILT = pathlib.Path(CACHE) / "cluster" / "bin"


def tool(name):
    """The path of a program: $HELM and so on, PATH, then what tests/cluster has built."""
    found = os.environ.get(name.upper()) or shutil.which(name) or shutil.which(name, path=str(BUILT))
    if not found:
        message = "there is no %s (tests/cluster/cluster build makes helm and kustomize; promtool " \
                  "is in Debian's package prometheus)" % name
        if os.environ.get("REQUIRE_CLUSTER") == "1":
            pytest.fail(message, pytrace=False)
        pytest.skip(message)
    return found


def run(*command, **kwargs):
    return subprocess.run([str(word) for word in command], text=True, capture_output=True,
                          timeout=60, **kwargs)


def helm_template(values, release="ringmaster", namespace=NAMESPACE):
    """(objects, error): what the chart renders with these values, or what helm says."""
    command = [tool("helm"), "template", release, CHART, "--namespace", namespace,
               "--kube-version", "1.34.0", "--values", "-"]
    done = run(*command, input=yaml.safe_dump(values))
    if done.returncode != 0:
        return None, done.stderr
    return [o for o in yaml.safe_load_all(done.stdout) if o], ""


@functools.lru_cache(maxsize=None)
def _render(text):
    return helm_template(yaml.safe_load(text))


def render(**values):
    """What the chart renders with these values; it must."""
    objects, error = _render(yaml.safe_dump(values))
    assert objects is not None, error
    return copy.deepcopy(objects)  # theirs to take apart


def of_kind(objects, kind):
    return [o for o in objects if o["kind"] == kind]


def only(objects, kind):
    found = of_kind(objects, kind)
    assert len(found) == 1, "%d objects of kind %s" % (len(found), kind)
    return found[0]


def is_hook(o):
    return "helm.sh/hook" in (o["metadata"].get("annotations") or {})


def pod_templates(objects):
    """(name, pod spec) of everything that makes pods."""
    for o in objects:
        if o["kind"] == "Pod":
            yield o["metadata"]["name"], o["spec"]
        elif o["kind"] in ("Deployment", "Job"):
            yield o["metadata"]["name"], o["spec"]["template"]["spec"]
