"""RBAC: as little as the chart's README says, and no more."""

import re

import pytest

from conftest import CHART, NAMESPACE, ROOT, helm_template, is_hook, of_kind, render


def rules(objects, hooks=False):
    """{(kind of scope, group, resource): verbs} of the operator's own roles."""
    rights = {}
    for o in of_kind(objects, "Role") + of_kind(objects, "ClusterRole"):
        if is_hook(o) != hooks or ":edit" in o["metadata"]["name"] or ":view" in o["metadata"]["name"]:
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
        if len(cells) == 4 and cells[0] in ("jobs", "nodes", "gang", "own", "uninstall"):
            group, resource = re.fullmatch(r"`([^`]*)` / `([^`]*)`", cells[1]).groups()
            assert cells[3], "what is %s for?" % cells[1]
            rows[(cells[0], "" if group == "core" else group, resource)] = \
                set(cells[2].split(", "))
    return rows


def test_no_rule_has_a_wildcard_or_makes_itself_stronger():
    for values in ({}, {"watchNamespace": "team-a"}):
        for hooks in (False, True):
            for (_, group, resource), verbs in rules(render(**values), hooks).items():
                assert "*" not in verbs | {group, resource}
                assert not verbs & {"escalate", "bind", "impersonate", "deletecollection"}
                assert group != "rbac.authorization.k8s.io"
                assert not (resource == "secrets" and verbs & {"list", "watch", "delete"})


def test_the_readme_says_of_each_right_what_it_is_for():
    table = readme_table()
    want = {}
    for (scope, group, resource), verbs in rules(render()).items():
        if scope == "cluster":
            where = "nodes" if resource == "nodes" else "jobs"
        else:
            where = "own"
        want[(where, group, resource)] = verbs
    for (_, group, resource), verbs in rules(render(), hooks=True).items():
        want[("uninstall", group, resource)] = verbs
    # The one that is asked for only where `jobs` is not for the whole cluster.
    want[("gang", "", "pods")] = rules(render(watchNamespace="team-a"))[("cluster", "", "pods")]
    assert table == want


def test_with_one_namespace_there_is_nothing_cluster_wide_but_reading_nodes_and_their_load():
    everything = rules(render())
    one = rules(render(watchNamespace="team-a"))
    assert {key[1:]: v for key, v in one.items() if key[0] == "cluster"} == \
        {("", "nodes"): {"get", "list", "watch"}, ("", "pods"): {"list", "watch"}}
    moved = {("team-a", *key[1:]): v for key, v in everything.items()
             if key[0] == "cluster" and key[2] != "nodes"}
    assert {key: v for key, v in one.items() if key[0] == "team-a"} == moved
    alone = {"watchNamespace": "team-a", "rbac": {"nodes": False}, "jobs": {"gangAdmission": False}}
    assert not [key for key in rules(render(**alone)) if key[0] == "cluster"]
    objects, error = helm_template(dict(alone, jobs={"gangAdmission": True}))
    assert objects is None and "jobs.gangAdmission is true, must be false while rbac.nodes" in error


@pytest.mark.parametrize("values", [{}, {"watchNamespace": "team-a"}])
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
    assert {r for r in roles if not r[2].endswith((":edit", ":view"))} == bound


def test_whoever_edits_a_namespace_edits_its_jobs_and_nobody_their_status():
    edit = next(o for o in of_kind(render(), "ClusterRole") if o["metadata"]["name"].endswith(":edit"))
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert {r for rule in edit["rules"] for r in rule["resources"]} == \
        {"horovodjobs", "horovodjobs/scale"}


def test_the_operator_asks_for_no_right_that_the_chart_does_not_give():
    """The operator says at its start which rights are missing (operator/app/rights.cc): none, with this chart."""
    text = (ROOT / "operator" / "app" / "rights.cc").read_text()
    given = rules(render())
    asked = re.findall(r'\{"([\w.]*)", "(\w+)", "(\w*)", \{([^}]*)\}\}', text)
    assert len(asked) >= 5, "this test can't read operator/app/rights.cc any more"
    own = text.index("OwnRules()")
    for group, resource, subresource, verbs in asked:
        name = resource + ("/" + subresource if subresource else "")
        scopes = ["cluster"] + ([NAMESPACE] if text.index('"%s"' % resource) > own else [])
        allowed = set().union(*(given.get((scope, group, name), set()) for scope in scopes))
        assert set(re.findall(r"\w+", verbs)) <= allowed, name
