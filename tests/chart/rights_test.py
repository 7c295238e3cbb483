"""RBAC: as little as the chart's README says, and no more."""

import re

import pytest

from conftest import CHART, ROOT, helm_template, is_hook, of_kind, only, render


def rules(objects, hooks=False):
    """{(kind of scope, group, resource): verbs} of the operator's own roles."""
    rights = {}
    for o in of_kind(objects, "Role") + of_kind(objects, "ClusterRole"):
        if is_hook(o) != hooks or o["metadata"]["name"].endswith((":edit", ":view", ":metrics", ":page")):
            continue
        scope = "cluster" if o["kind"] == "ClusterRole" else o["metadata"]["namespace"]
        for rule in o["rules"]:
            assert not rule.keys() - {"apiGroups", "resources", "verbs"}
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    rights.setdefault((scope, group, resource), set()).update(rule["verbs"])
    return rights


def readme_table():
    """Rows `| where | `group` `resource` | verbs | what for |` of the chart's README."""
    rows = {}
    for line in (CHART / "README.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == 4 and cells[0] in ("jobs", "nodes", "trust", "gang", "requests", "kueue", "page", "reviews", "own", "uninstall"):
            group, resource = re.fullmatch(r"`([^`]*)` / `([^`]*)`", cells[1]).groups()
            assert cells[3], "what is %s for?" % cells[1]
            rows[(cells[0], "" if group == "core" else group, resource)] = \
                set(cells[2].split(", "))
    return rows


def test_no_rule_has_a_wildcard_or_makes_itself_stronger():
    for values in ({}, {"watchNamespaces": ["team-a"]}):
        for hooks in (False, True):
            for (_, group, resource), verbs in rules(render(**values), hooks).items():
                assert "*" not in verbs | {group, resource}
                assert not verbs & {"escalate", "bind", "impersonate", "deletecollection"}
                assert group != "rbac.authorization.k8s.io"
                assert not (resource == "secrets" and verbs & {"list", "watch", "delete"})


# In no namespace, so no role of a namespace has them.
CLUSTER_ALONE = ("nodes", "priorityclasses")


def test_the_readme_says_of_each_right_what_it_is_for():
    table = readme_table()
    want = {}
    for (scope, group, resource), verbs in rules(render()).items():
        if scope == "cluster":
            where = {"nodes": "nodes", "priorityclasses": "gang"}.get(resource, "jobs")
        else:
            where = "own"
        want[(where, group, resource)] = verbs
    for (_, group, resource), verbs in rules(render(), hooks=True).items():
        want[("uninstall", group, resource)] = verbs
    # The one that is asked for only where `jobs` is not for the whole cluster.
    trusting = rules(render(nodes={"trustNodeDeletion": True}))
    want[("trust", "", "nodes")] = trusting[("cluster", "", "nodes")] - want[("nodes", "", "nodes")]
    secure = rules(render(metrics={"secure": True}))
    want.update({("reviews", *key[1:]): verbs for key, verbs in secure.items() if key not in rules(render())})
    page = rules(render(page={"enabled": True}))
    want.update({("page", *key[1:]): verbs for key, verbs in page.items() if key not in secure})
    queues = rules(render(jobs={"kueue": True}))
    want.update({("kueue", *key[1:]): verbs for key, verbs in queues.items() if key not in rules(render())})
    requests = rules(render(jobs={"autoscaling": {"mode": "ProvisioningRequest"}}))
    want.update({("requests", *key[1:]): verbs for key, verbs in requests.items() if key not in rules(render())})
    want[("gang", "", "pods")] = rules(render(watchNamespaces=["team-a"]))[("cluster", "", "pods")]
    assert table == want


def test_with_one_namespace_there_is_nothing_cluster_wide_but_reading_nodes_and_their_load():
    everything = rules(render())
    one = rules(render(watchNamespaces=["team-a"]))
    assert {key[1:]: v for key, v in one.items() if key[0] == "cluster"} == \
        {("", "nodes"): {"list", "watch"}, ("", "pods"): {"list", "watch"}, ("scheduling.k8s.io", "priorityclasses"): {"get", "list"}}
    moved = {("team-a", *key[1:]): v for key, v in everything.items()
             if key[0] == "cluster" and key[2] not in CLUSTER_ALONE}
    assert {key: v for key, v in one.items() if key[0] == "team-a"} == moved
    alone = {"watchNamespaces": ["team-a"], "rbac": {"nodes": False}, "jobs": {"gangAdmission": False}}
    assert not [key for key in rules(render(**alone)) if key[0] == "cluster"]
    objects, error = helm_template(dict(alone, jobs={"gangAdmission": True}))
    assert objects is None and "jobs.gangAdmission is true, must be false while rbac.nodes" in error
    objects, error = helm_template(dict(alone, nodes={"trustNodeDeletion": True}))
    assert objects is None and "nodes.trustNodeDeletion is true, must be false while rbac.nodes" in error


def test_a_namespace_may_have_a_name_that_yaml_takes_for_a_number_or_a_truth():
    objects = render(watchNamespaces=["1234", "true"], priorityClassName="1000")
    namespaces = {o["metadata"].get("namespace") for o in objects if o["kind"] in ("Role", "RoleBinding")}
    assert {"1234", "true"} <= namespaces and all(isinstance(namespace, str) for namespace in namespaces)
    assert only(objects, "Deployment")["spec"]["template"]["spec"]["priorityClassName"] == "1000"


@pytest.mark.parametrize("hooks", [False, True])
def test_with_several_namespaces_each_has_the_same_role_and_no_other_has_one(hooks):
    everything = {key[1:]: v for key, v in rules(render(), hooks).items() if key[0] == "cluster" and key[2] not in CLUSTER_ALONE}
    several = rules(render(watchNamespaces=["team-a", "team-b"]), hooks)
    for team in ("team-a", "team-b"):
        assert {key[1:]: v for key, v in several.items() if key[0] == team} == everything
    assert {key[0] for key in several} - {"cluster", "ringmaster-system"} == {"team-a", "team-b"}


@pytest.mark.parametrize("values", [{}, {"watchNamespaces": ["team-a"]}, {"watchNamespaces": ["team-a", "team-b"]},
                                    {"metrics": {"secure": True}}, {"page": {"enabled": True}, "watchNamespaces": ["team-a"]}])
def test_every_binding_binds_a_role_that_there_is_to_the_account_that_there_is(values):
    objects = render(**values)
    roles = {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in objects
             if o["kind"] in ("Role", "ClusterRole")}
    accounts = {o["metadata"]["name"] for o in of_kind(objects, "ServiceAccount")}
    bindings = of_kind(objects, "RoleBinding") + of_kind(objects, "ClusterRoleBinding")
    bound = set()
    for o in bindings:
        ref = o["roleRef"]
        role = (ref["kind"], o["metadata"].get("namespace"), ref["name"])
        assert role in roles
        bound.add(role)
        assert all(s["name"] in accounts for s in o["subjects"])
    assert {r for r in roles if not r[2].endswith((":edit", ":view", ":metrics", ":page"))} == bound


def test_whoever_edits_a_namespace_edits_its_jobs_and_nobody_their_status():
    edit = next(o for o in of_kind(render(), "ClusterRole") if o["metadata"]["name"].endswith(":edit"))
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert {r for rule in edit["rules"] for r in rule["resources"]} == \
        {"horovodjobs", "horovodjobs/scale"}


# Given and never called: an admission plugin of some clusters asks for it (OwnerReferencesPermissionEnforcement).
UNCALLED = {("ringmaster.dev", "horovodjobs/finalizers", "update")}


def given_rights():
    """{(group, resource, verb)} with every setting that adds some."""
    everything = render(nodes={"trustNodeDeletion": True}, metrics={"secure": True}, page={"enabled": True},
                        jobs={"kueue": True, "autoscaling": {"mode": "ProvisioningRequest"}})
    return {(group, resource, verb) for (_, group, resource), verbs in rules(everything).items() for verb in verbs}


def test_the_operator_asks_for_the_rights_that_the_chart_gives():
    """The operator says at its start which rights are missing (operator/app/rights.cc): none, with this chart."""
    text = (ROOT / "operator" / "app" / "rights.cc").read_text()
    found = re.findall(r'\{"([\w.-]*)", "(\w+)", "(\w*)", \{([^}]*)\}\}', text)
    assert len(found) >= 5, "this test can't read operator/app/rights.cc any more"
    asked = {(group, resource + ("/" + subresource if subresource else ""), verb)
             for group, resource, subresource, verbs in found for verb in re.findall(r"\w+", verbs)}
    assert asked == given_rights() - UNCALLED


# Called by a name that is none of operator/kube/resources.cc (operator/app/access_review.cc).
REVIEWS = {("authentication.k8s.io", "tokenreviews", "create"), ("authorization.k8s.io", "subjectaccessreviews", "create")}
# Called in the version that is served (operator/controllers/pod_groups.cc, provisioning_requests.cc).
DISCOVERED = {("scheduling.k8s.io", "podgroups", verb) for verb in ("get", "list", "watch", "create", "patch")} | \
    {("autoscaling.x-k8s.io", "provisioningrequests", verb) for verb in ("list", "watch", "create", "delete")}
VERBS = {"Get": ["get"], "ListAll": ["list"], "List": ["list"], "Create": ["create"], "CreateWith": ["create"],
         "Update": ["update"], "Patch": ["patch"], "Delete": ["delete"]}


def called_rights():
    """{(group, resource, verb)} of the calls in the operator's sources; an informer lists and watches."""
    groups = {kind: (group, plural) for group, plural, kind in re.findall(
        r'\{"([\w.-]*)", "\w+", "(\w+)", "(\w+)",', (ROOT / "operator/kube/resources.cc").read_text())}

    def resource(function):  # Pods() is about the kind Pod, NetworkPolicies() about NetworkPolicy
        return groups[re.sub(r"(?<!s)s$", "", re.sub(r"sses$", "ss", re.sub(r"ies$", "y", function)))]
    called = set()
    for folder in ("app", "controllers", "daemon", "runtime"):
        for source in (ROOT / "operator" / folder).glob("*.cc"):
            if source.name.endswith("_test.cc"):
                continue
            text = source.read_text()
            kept = re.findall(r"\bKeepObject\(job, kube::(\w+)\(\)", text)
            for call, what, rest in re.findall(r"\b(?:api_?|lookup_)(?:->|\.)(\w+)\(\s*(kube::\w+\(\)|resource)([^;]*)", text):
                about = kept if what == "resource" else [what[len("kube::"):-2]]
                status = "/status" if re.search(r'"status"}?\)', rest) else ""
                for function in about:
                    group, plural = resource(function)
                    called |= {(group, plural + status, verb) for verb in VERBS[call]}
            for function in re.findall(r"_\(api_?, kube::(\w+)\(\)", text):
                called |= {(*resource(function), verb) for verb in ("list", "watch")}
            if re.search(r"\bapi_?->PodLogWith\(", text):
                called.add(("", "pods/log", "get"))
    return called


def test_every_right_is_called_and_every_call_has_its_right():
    called = called_rights()
    assert len(called) > 30, "this test can't read the operator's sources any more"
    reviews = (ROOT / "operator/app/access_review.cc").read_text()
    assert all('"%s", "v1", "%s"' % (group, resource) in reviews for group, resource, _ in REVIEWS)
    assert DISCOVERED <= given_rights()
    assert called == given_rights() - UNCALLED - REVIEWS - DISCOVERED


def test_the_page_has_a_role_for_those_who_may_see_it_and_reads_logs_where_jobs_are_alone():
    values = {"page": {"enabled": True}, "watchNamespaces": ["team-a"], "rbac": {"nodes": False}, "jobs": {"gangAdmission": False}}
    given = rules(render(**values))
    assert {key for key in given if key[0] == "cluster"} == {("cluster", *review[:2]) for review in REVIEWS}
    assert [key[0] for key in given if key[2] == "pods/log"] == ["team-a"]
    role = next(o for o in of_kind(render(**values), "ClusterRole") if o["metadata"]["name"].endswith(":page"))
    assert role["rules"] == [{"nonResourceURLs": ["/page"], "verbs": ["get"]}]
    assert not [o for o in of_kind(render(), "ClusterRole") if o["metadata"]["name"].endswith(":page")]


def test_secure_metrics_have_a_role_for_those_who_scrape_and_no_more():
    values = {"metrics": {"secure": True}, "watchNamespaces": ["team-a"], "rbac": {"nodes": False}, "jobs": {"gangAdmission": False}}
    assert {key for key in rules(render(**values)) if key[0] == "cluster"} == {("cluster", *review[:2]) for review in REVIEWS}
    role = next(o for o in of_kind(render(**values), "ClusterRole") if o["metadata"]["name"].endswith(":metrics"))
    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    assert not [o for o in of_kind(render(), "ClusterRole") if o["metadata"]["name"].endswith(":metrics")]


@pytest.mark.parametrize("values", [{"autoscaling": {"mode": "Pending"}}, {"gangAdmission": False, "autoscaling": {"mode": "ProvisioningRequest"}}])
def test_who_makes_no_provisioning_requests_has_no_right_to(values):
    given = rules(render(jobs=values))
    assert not [key for key in given if key[2] in ("provisioningrequests", "podtemplates")]
