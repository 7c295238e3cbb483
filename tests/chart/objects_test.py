"""What the chart renders, with the values that people set."""

import json
import re

import pytest

from conftest import NAMESPACE, helm_template, is_hook, of_kind, only, pod_templates, render

ALL_ON = {
    "metrics": {"secure": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
                "podMonitor": {"enabled": True}, "rules": {"enabled": True},
                "dashboard": {"enabled": True}},
    "page": {"enabled": True, "from": [{"podSelector": {"matchLabels": {"app": "gateway"}}}]},
    "config": {"leaseDurationSeconds": 20}, "imagePullSecrets": [{"name": "registry"}],
    "extraArgs": ["--log-level=debug"], "extraEnv": [{"name": "A", "value": "b"}],
    "podLabels": {"team": "x"}, "podAnnotations": {"a": "b"}, "commonLabels": {"owner": "me"},
    "nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [{"operator": "Exists"}],
    "affinity": {"nodeAffinity": {}}, "priorityClassName": "system-cluster-critical",
    "networkPolicy": {"sidecarsFrom": [{"namespaceSelector": {}}],
                      "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
}
ALL_OFF = {
    "replicas": 1, "leaderElection": {"enabled": False}, "crds": {"install": False},
    "rbac": {"create": False}, "serviceAccount": {"create": False, "name": "mine"},
    "topologySpread": {"enabled": False}, "podDisruptionBudget": {"enabled": False},
    "networkPolicy": {"enabled": False}, "metrics": {"annotations": False},
    "cleanup": {"enabled": False},
}
ONE_NAMESPACE = {"watchNamespaces": ["team-a"]}
TWO_NAMESPACES = {"watchNamespaces": ["team-a", "team-b"]}
VALUE_SETS = {"default": {}, "all on": ALL_ON, "all off": ALL_OFF, "one namespace": ONE_NAMESPACE,
              "two namespaces": TWO_NAMESPACES}

CLUSTER_WIDE = {"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
VERSIONS = {
    "Deployment": "apps/v1", "Job": "batch/v1", "Pod": "v1", "Service": "v1", "ConfigMap": "v1",
    "ServiceAccount": "v1", "PodDisruptionBudget": "policy/v1",
    "NetworkPolicy": "networking.k8s.io/v1", "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1", "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "ServiceMonitor": "monitoring.coreos.com/v1", "PodMonitor": "monitoring.coreos.com/v1",
    "PrometheusRule": "monitoring.coreos.com/v1",
}


def operator_pod(**values):
    deployment = only(render(**values), "Deployment")
    return deployment["spec"]["template"]


def operator_container(**values):
    return operator_pod(**values)["spec"]["containers"][0]


@pytest.fixture(params=VALUE_SETS.values(), ids=VALUE_SETS.keys())
def objects(request):
    return render(**request.param)


def test_every_object_has_a_known_version_a_valid_name_and_the_common_labels(objects):
    seen = set()
    for o in objects:
        assert VERSIONS[o["kind"]] == o["apiVersion"]
        metadata = o["metadata"]
        pattern = r"[a-z0-9]([-a-z0-9.:]*[a-z0-9])?" if o["kind"] in CLUSTER_WIDE else \
            r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
        assert re.fullmatch(pattern, metadata["name"]) and len(metadata["name"]) <= 63
        assert (o["kind"] in CLUSTER_WIDE) == ("namespace" not in metadata), metadata["name"]
        for label in ("app.kubernetes.io/name", "app.kubernetes.io/instance",
                      "app.kubernetes.io/version", "helm.sh/chart"):
            assert label in metadata["labels"], o["kind"]
        key = (o["kind"], metadata.get("namespace"), metadata["name"])
        assert key not in seen, "twice: %s" % (key,)
        seen.add(key)


def test_every_pod_passes_the_restricted_pod_security_standard(objects):
    for name, spec in pod_templates(objects):
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert all("hostPath" not in volume for volume in spec.get("volumes", []))
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                               "capabilities": {"drop": ["ALL"]}}
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]


def test_every_mount_has_its_volume_and_every_selector_finds_the_operators_pods(objects):
    for _, spec in pod_templates(objects):
        volumes = {v["name"] for v in spec.get("volumes", [])}
        for container in spec["containers"]:
            assert {m["name"] for m in container.get("volumeMounts", [])} == volumes
    deployment = only(objects, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    leader = dict(labels, **{"ringmaster.dev/leader": "true"})
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for service in of_kind(objects, "Service"):
        assert service["spec"]["selector"].items() <= leader.items()
        names = {p["name"] for p in operator_ports(deployment)}
        assert {p["targetPort"] for p in service["spec"]["ports"]} <= names
    for kind, path in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
        for o in of_kind(objects, kind):
            assert o["spec"][path]["matchLabels"].items() <= labels.items()


def operator_ports(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]["ports"]


def test_hooks_and_tests_are_found_by_no_selector_of_the_operator(objects):
    selector = only(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    for o in objects:
        if is_hook(o) and o["kind"] in ("Pod", "Job"):
            labels = o["metadata"]["labels"] if o["kind"] == "Pod" else \
                o["spec"]["template"]["metadata"]["labels"]
            assert not selector.items() <= labels.items(), o["metadata"]["name"]


def test_sidecars_dial_the_service_that_only_the_leader_is_behind():
    objects = render()
    service = next(s for s in of_kind(objects, "Service")
                   if s["metadata"]["name"] == "ringmaster-operator")
    assert service["spec"]["selector"]["ringmaster.dev/leader"] == "true"
    assert [p["port"] for p in service["spec"]["ports"]] == [9443]
    assert "--sidecar-target=ringmaster-operator.$(POD_NAMESPACE).svc:9443" in \
        operator_container()["args"]


def test_without_leader_election_nobody_wears_the_label_and_so_the_service_asks_for_none():
    values = {"replicas": 1, "leaderElection": {"enabled": False}}
    for service in of_kind(render(**values), "Service"):
        assert "ringmaster.dev/leader" not in service["spec"]["selector"]
    assert not any("leader" in word for word in operator_container(**values)["args"])


def test_without_leader_election_there_are_never_two_operators_not_even_at_an_upgrade():
    alone = only(render(replicas=1, leaderElection={"enabled": False}), "Deployment")
    assert alone["spec"]["strategy"] == {"type": "Recreate"}
    assert only(render(), "Deployment")["spec"]["strategy"]["type"] == "RollingUpdate"


def test_two_replicas_without_leader_election_are_refused():
    objects, error = helm_template({"leaderElection": {"enabled": False}})
    assert objects is None
    assert "replicas is 2, must be 0 or 1 while leaderElection.enabled is false" in error


def test_images_follow_the_charts_version_a_tag_or_a_digest():
    assert operator_container()["image"] == "ringmaster.dev/operator:0.1.0"
    assert operator_container(image={"tag": "9"})["image"] == "ringmaster.dev/operator:9"
    digest = "sha256:" + "0" * 64
    container = operator_container(image={"repository": "r.example/op", "tag": "9", "digest": digest},
                                   sidecar={"image": {"repository": "r.example/side", "tag": "7"}})
    assert container["image"] == "r.example/op@" + digest
    assert {"name": "SIDECAR_IMAGE", "value": "r.example/side:7"} in container["env"]
    assert "--sidecar-image=$(SIDECAR_IMAGE)" in container["args"]


def test_what_the_operator_knows_by_itself_is_no_flag_and_what_is_set_is():
    words = ("--sidecar-resources", "--network-policy", "--metrics-namespace", "--disruption-taints",
             "--trust-node-deletion", "--watch-namespaces", "--config", "--gang-admission", "--autoscaling",
             "--kueue", "--pod-groups")
    assert not [a for a in operator_container()["args"] if a.startswith(words)]
    args = operator_container(
        sidecar={"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}},
        jobs={"gangAdmission": False, "kueue": True, "podGroups": "Never",
              "autoscaling": {"mode": "Pending", "afterSeconds": 5, "withinSeconds": 600, "jobs": 2},
              "networkPolicy": {"enabled": False, "metricsNamespace": "monitoring"}},
        nodes={"disruptionTaints": ["a/b", "c"], "trustNodeDeletion": True},
        watchNamespaces=["team-a"])["args"]
    resources = next(a for a in args if a.startswith("--sidecar-resources="))
    assert json.loads(resources.split("=", 1)[1]) == {"requests": {"cpu": "1"},
                                                      "limits": {"memory": "1Gi"}}
    assert {"--autoscaling=Pending", "--autoscaling-after-seconds=5", "--autoscaling-within-seconds=600",
            "--autoscaling-jobs=2", "--gang-admission=false", "--kueue", "--pod-groups=Never", "--network-policy=false",
            "--metrics-namespace=monitoring", "--disruption-taints=a/b,c",
            "--trust-node-deletion", "--watch-namespaces=team-a"} <= set(args)


def test_the_class_of_provisioning_requests_is_given_where_they_are_made():
    args = operator_container(jobs={"autoscaling": {"mode": "ProvisioningRequest", "provisioningClass": "a.b"}})["args"]
    assert {"--autoscaling=ProvisioningRequest", "--autoscaling-class=a.b"} <= set(args)
    assert not [a for a in operator_container(jobs={"autoscaling": {"mode": "Pending"}})["args"] if a.startswith("--autoscaling-class")]
    for wrong in ({"mode": "Off"}, {"mode": "ProvisioningRequest", "provisioningClass": "Any Class"}):
        assert helm_template({"jobs": {"autoscaling": wrong}})[0] is None


def test_what_flags_name_stands_before_them_in_the_environment():
    container = operator_container()
    names = {e["name"] for e in container["env"]}
    used = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
    assert used and used <= names


def test_no_flag_is_given_twice_for_the_operator_would_refuse_it(objects):
    names = [word.split("=")[0] for word in only(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]]
    assert sorted(names) == sorted(set(names))


def test_a_flag_of_extraArgs_comes_in_the_place_of_the_charts_own():
    args = operator_container(extraArgs=["--log-level=debug", "--leader-elect=false", "--retry-period-seconds=3"])["args"]
    assert args[-3:] == ["--log-level=debug", "--leader-elect=false", "--retry-period-seconds=3"]
    kept = [word for word in operator_container()["args"] if word not in ("--log-level=info", "--leader-elect")]
    assert args[:-3] == kept


def test_without_rights_of_the_charts_there_is_no_role_and_no_binding_of_any_kind():
    objects = render(rbac={"create": False}, metrics={"secure": True}, page={"enabled": True})
    assert not [o["metadata"]["name"] for o in objects if "Role" in o["kind"]]


def test_another_configuration_makes_other_pods():
    one = operator_pod(config={"leaseDurationSeconds": 20})
    two = operator_pod(config={"leaseDurationSeconds": 21})
    assert "--config=/etc/ringmaster/config.yaml" in one["spec"]["containers"][0]["args"]
    key = "checksum/config"
    assert one["metadata"]["annotations"][key] != two["metadata"]["annotations"][key]
    config = only([o for o in render(config={"leaseDurationSeconds": 20})
                   if o["metadata"]["name"] == "ringmaster-operator-config"], "ConfigMap")
    assert config["data"]["config.yaml"].strip() == "leaseDurationSeconds: 20"


def test_probes_ask_the_health_port():
    container = operator_container(ports={"health": 8181})
    assert "--health-listen=0.0.0.0:8181" in container["args"]
    assert {"name": "health", "containerPort": 8181, "protocol": "TCP"} in container["ports"]
    paths = {probe: container[probe]["httpGet"] for probe in
             ("startupProbe", "livenessProbe", "readinessProbe")}
    assert paths["readinessProbe"] == {"path": "/readyz", "port": "health"}
    assert paths["livenessProbe"] == paths["startupProbe"] == {"path": "/healthz", "port": "health"}


def test_a_single_replica_gets_no_budget_that_would_stop_every_drain():
    assert only(render(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert not of_kind(render(replicas=1), "PodDisruptionBudget")


def test_annotations_name_the_metrics_port_for_a_prometheus_without_its_operator():
    annotations = operator_pod(ports={"metrics": 8888})["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == "8888"
    assert annotations["prometheus.io/scrape"] == "true"
    off = operator_pod(metrics={"annotations": False})["metadata"]["annotations"]
    assert not any(name.startswith("prometheus.io/") for name in off)
    twice = operator_pod(metrics={"serviceMonitor": {"enabled": True}})["metadata"]["annotations"]
    assert not any(name.startswith("prometheus.io/") for name in twice), "each pod would be scraped twice"


def test_secure_metrics_are_scraped_with_a_token_over_tls():
    values = {"metrics": {"secure": True}}
    assert "--metrics-secure" in operator_container(**values)["args"]
    assert "--metrics-secure" not in operator_container()["args"]
    assert operator_pod(**values)["metadata"]["annotations"]["prometheus.io/scheme"] == "https"
    values["metrics"]["serviceMonitor"] = {"enabled": True}
    endpoint = only(render(**values), "ServiceMonitor")["spec"]["endpoints"][0]
    assert endpoint["scheme"] == "https" and endpoint["bearerTokenFile"].endswith("serviceaccount/token")
    assert endpoint["tlsConfig"] == {"insecureSkipVerify": True}


def test_the_page_is_off_until_it_is_asked_for_and_then_the_leaders():
    assert not [arg for arg in operator_container()["args"] if "page" in arg]
    assert not [o for o in of_kind(render(), "Service") if o["metadata"]["name"].endswith("-page")]
    values = {"page": {"enabled": True, "from": [{"podSelector": {}}]}, "ports": {"page": 9444}}
    container = operator_container(**values)
    assert "--page-listen=0.0.0.0:9444" in container["args"]
    assert {"name": "page", "containerPort": 9444, "protocol": "TCP"} in container["ports"]
    service = next(o for o in of_kind(render(**values), "Service") if o["metadata"]["name"].endswith("-page"))
    assert service["spec"]["selector"]["ringmaster.dev/leader"] == "true"
    assert [(p["port"], p["targetPort"]) for p in service["spec"]["ports"]] == [(9444, "page")]
    ingress = only(render(**values), "NetworkPolicy")["spec"]["ingress"]
    assert {"ports": [{"port": "page", "protocol": "TCP"}], "from": [{"podSelector": {}}]} in ingress


def test_the_pod_of_helm_test_gets_to_the_ports_that_it_asks_whoever_else_may():
    peers = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    for values in ({}, {"metricsFrom": peers}, {"sidecarsFrom": peers}, {"metricsFrom": peers, "sidecarsFrom": peers}):
        objects = render(networkPolicy=values)
        labels = only(objects, "Pod")["metadata"]["labels"]
        admitted = set()
        for rule in only(objects, "NetworkPolicy")["spec"]["ingress"]:
            if "from" not in rule or any(peer.get("podSelector", {}).get("matchLabels", {"": ""}).items() <= labels.items()
                                         for peer in rule["from"]):
                admitted |= {each["port"] for each in rule["ports"]}
        assert {"grpc", "metrics"} <= admitted, values
    closed = only(render(networkPolicy={"metricsFrom": peers}), "NetworkPolicy")["spec"]["ingress"]
    assert {"ports": [{"port": "metrics", "protocol": "TCP"}], "from": peers} in closed


def test_monitors_keep_the_namespace_of_the_job():
    objects = render(**ALL_ON)
    service = only(objects, "ServiceMonitor")
    assert service["metadata"]["labels"]["release"] == "prometheus"
    assert all(e["honorLabels"] for e in service["spec"]["endpoints"])
    pods = only(objects, "PodMonitor")
    assert all(e["honorLabels"] for e in pods["spec"]["podMetricsEndpoints"])
    assert pods["spec"]["namespaceSelector"] == {"any": True}
    # What it selects is a Service that there is.
    selected = [s for s in of_kind(objects, "Service")
                if service["spec"]["selector"]["matchLabels"].items()
                <= s["metadata"]["labels"].items()]
    assert [s["metadata"]["name"] for s in selected] == ["ringmaster-operator-metrics"]
    one = render(watchNamespaces=["team-a"], metrics={"podMonitor": {"enabled": True}})
    assert only(one, "PodMonitor")["spec"]["namespaceSelector"] == {"matchNames": ["team-a"]}
    two = operator_container(watchNamespaces=["team-a", "team-b"])
    assert "--watch-namespaces=team-a,team-b" in two["args"]


def test_another_release_name_gives_other_names():
    objects, error = helm_template({}, release="elastic", namespace="other")
    assert objects, error
    names = {o["metadata"]["name"] for o in objects if o["kind"] != "CustomResourceDefinition"}
    assert all("elastic-ringmaster-operator" in name for name in names)
    for o in objects:
        assert o["metadata"].get("namespace", "other") == "other"


def test_the_longest_release_name_still_gives_valid_names():
    objects, error = helm_template({}, release="a" * 53)
    assert objects, error
    for o in objects:
        if o["kind"] not in CLUSTER_WIDE:
            assert len(o["metadata"]["name"]) <= 63, o["metadata"]["name"]


def test_the_uninstall_hook_has_rights_of_its_own_that_outlive_the_operators():
    hooks = [o for o in render() if is_hook(o) and o["kind"] != "Pod"]
    assert {o["kind"] for o in hooks} == {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job"}
    for o in hooks:
        assert o["metadata"]["annotations"]["helm.sh/hook"] == "post-delete"
    job = only(hooks, "Job")
    account = only(hooks, "ServiceAccount")["metadata"]["name"]
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert only(hooks, "ClusterRoleBinding")["subjects"] == [
        {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
    weights = {o["kind"]: int(o["metadata"]["annotations"]["helm.sh/hook-weight"]) for o in hooks}
    assert weights["Job"] > max(w for kind, w in weights.items() if kind != "Job")
