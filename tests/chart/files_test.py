"""The files of charts/ and deploy/ that others are made from, or that other programs read."""

import json
import os
import re

import pytest
import yaml

from conftest import CHART, ROOT, of_kind, only, render, run, tool

CRD = ROOT / "crds" / "ringmaster.dev_horovodjobs.yaml"
VERSION = re.search(r"project\(ringmaster VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_the_copies_of_the_custom_resource_are_its_very_bytes():
    for copy in (CHART / "files", ROOT / "deploy" / "kustomize" / "base"):
        name = CRD.name if "charts" in str(copy) else "crd.yaml"
        assert (copy / name).read_bytes() == CRD.read_bytes(), "run hack/deploy-files"


def test_made_files_are_what_hack_deploy_files_makes():
    done = run(ROOT / "hack" / "deploy-files", "--check", env=dict(os.environ, HELM=tool("helm")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_chart_installs_the_custom_resource_as_it_is():
    rendered = only(render(), "CustomResourceDefinition")
    metadata = rendered.pop("metadata")
    source = yaml.safe_load(CRD.read_text())
    assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert metadata["name"] == source.pop("metadata")["name"]
    assert rendered == source
    gone = only(render(crds={"keep": False}), "CustomResourceDefinition")
    assert "annotations" not in gone["metadata"]
    assert not of_kind(render(crds={"install": False}), "CustomResourceDefinition")


def test_one_version_stands_everywhere():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == VERSION
    job = (ROOT / "examples" / "digits" / "job.yaml").read_text()
    assert "image: ringmaster.dev/examples-digits:%s\n" % VERSION in job


def build(folder):
    done = run(tool("kustomize"), "build", ROOT / "deploy" / "kustomize" / folder)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def plain(objects):
    """{(kind, name): object}, without what only Helm adds."""
    result = {}
    for o in objects:
        if "helm.sh/hook" in (o["metadata"].get("annotations") or {}) or o["kind"] == "Namespace":
            continue
        if o["kind"] == "CustomResourceDefinition":
            o = dict(o, metadata={"name": o["metadata"]["name"]})
        text = json.dumps(o, sort_keys=True)
        for label in ("app.kubernetes.io/managed-by", "helm.sh/chart"):
            text = re.sub(r'"%s": "[^"]*"(, )?' % re.escape(label), "", text)
        result[o["kind"], o["metadata"]["name"]] = json.loads(text.replace(", }", "}"))
    return result


def test_kustomize_builds_what_the_chart_renders():
    assert plain(build("base")) == plain(render())


@pytest.mark.parametrize("folder", ["base", "overlays/page", "overlays/example"])
def test_no_flag_is_given_twice_for_the_operator_would_refuse_it(folder):
    args = only(build(folder), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    names = [word.split("=")[0] for word in args]
    assert sorted(names) == sorted(set(names))


def test_the_overlay_of_the_page_is_the_chart_with_the_page():
    def in_any_order(value):
        if isinstance(value, dict):
            return {key: in_any_order(each) for key, each in value.items()}
        return sorted(map(in_any_order, value), key=json.dumps) if isinstance(value, list) else value
    assert in_any_order(plain(build("overlays/page"))) == in_any_order(plain(render(page={"enabled": True})))


def test_the_namespace_of_the_base_enforces_the_restricted_standard():
    namespace = only(build("base"), "Namespace")
    assert namespace["metadata"]["name"] == "ringmaster-system"
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_example_overlay_changes_what_it_says_and_leaves_no_old_namespace():
    objects = build("overlays/example")
    for o in objects:
        assert o["metadata"].get("namespace", "training-system") == "training-system"
        for subject in o.get("subjects", []):
            assert subject["namespace"] == "training-system"
    deployment = only(objects, "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert deployment["spec"]["replicas"] == 3
    assert container["image"] == "registry.example.com/ringmaster/operator:0.1.0"
    assert {"name": "SIDECAR_IMAGE", "value": "registry.example.com/ringmaster/sidecar:0.1.0"} in \
        container["env"]
    assert container["args"][-1] == "--autoscaling=Pending"
    assert only(objects, "Namespace")["metadata"]["name"] == "training-system"
    assert only(objects, "PrometheusRule")["metadata"]["name"] == "training-team"
