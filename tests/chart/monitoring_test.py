"""Alerts, dashboard and scrape configuration: well-formed, and about metrics that there are."""

import json
import re

import yaml

from conftest import ROOT, only, render, run, tool

MONITORING = ROOT / "deploy" / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text())
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())


def documented():
    """{metric: (type, labels)} of the tables in docs/metrics.md."""
    found = {}
    labels = set()
    for line in (ROOT / "docs" / "metrics.md").read_text().splitlines():
        if line.startswith("#"):
            labels = set()
        if "labels `" in line:
            labels = set(re.findall(r"`(\w+)`", line.split("labels ", 1)[1].split(".")[0]))
        row = re.match(r"\| `(ringmaster_\w+)(?:\{([\w,]+)\})?` \| (\w+) \|", line)
        if row:
            own = set(row[2].split(",")) if row[2] else set()
            found[row[1]] = (row[3], own | labels)
    return found


METRICS = documented()


def metrics_of(expression):
    """(documented name, labels in its braces) of each series that an expression reads."""
    for name, braces in re.findall(r"\b(ringmaster_[a-z_]+)(?:\{([^}]*)\})?", expression):
        if name not in METRICS:
            base = re.sub(r"_(bucket|count|sum)$", "", name)
            assert METRICS.get(base, ("",))[0] == "histogram", "%s is not in docs/metrics.md" % name
            name = base
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", braces))


def alerts():
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions():
    yield from (rule["expr"] for rule in alerts())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


def test_the_metrics_page_has_been_read():
    assert METRICS["ringmaster_job_steps_lost_total"] == ("counter", {"namespace", "job_name"})
    assert METRICS["ringmaster_operator_recovery_seconds"] == ("histogram", {"phase", "cause"})
    assert METRICS["ringmaster_sidecar_step"][1] == {"namespace", "job_name", "pod"}


def test_alerts_and_panels_read_only_metrics_and_labels_that_are_documented():
    of_targets = {"instance", "namespace", "le"}
    for expression in expressions():
        found = list(metrics_of(expression))
        assert found, expression
        for name, labels in found:
            assert labels <= METRICS[name][1] | of_targets, "%s in %s" % (name, expression)
            kind = METRICS[name][0]
            if kind == "counter":
                assert re.search(r"(increase|rate)\(%s" % name, expression), expression


def test_every_alert_says_how_bad_it_is_what_it_means_and_what_to_do():
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names)) >= 10
    for rule in alerts():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert set(rule["annotations"]) == {"summary", "description", "runbook"}
        assert all(len(text) > 20 for text in rule["annotations"].values()), rule["alert"]


def test_promtool_accepts_the_rules():
    done = run(tool("promtool"), "check", "rules", "--lint=all", "--lint-fatal", MONITORING / "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_on_what_they_are_for_and_on_nothing_else():
    done = run(tool("promtool"), "test", "rules", ROOT / "tests" / "chart" / "rules_test.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    tested = (ROOT / "tests" / "chart" / "rules_test.yaml").read_text()
    untested = [rule["alert"] for rule in alerts() if rule["alert"] not in tested]
    assert not untested, "alerts without a test"


def test_promtool_accepts_the_scrape_configuration(tmp_path):
    config = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    for scrape in config["scrape_configs"]:
        assert scrape["honor_labels"], "a job's namespace must not be replaced by its pod's"
        # Debian's promtool is built without Kubernetes; all else of the file is checked.
        assert [sd["role"] for sd in scrape.pop("kubernetes_sd_configs")] == ["pod"]
        scrape["static_configs"] = [{"targets": ["localhost:1"]}]
    (tmp_path / "prometheus.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "rules.yaml").write_text((MONITORING / "rules.yaml").read_text())
    done = run(tool("promtool"), "check", "config", tmp_path / "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_scrape_configuration_finds_the_pods_of_operator_and_jobs():
    config = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    selectors = [s["kubernetes_sd_configs"][0]["selectors"][0]["label"]
                 for s in config["scrape_configs"]]
    labels = only(render(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    wanted = dict(pair.split("=") for pair in selectors[0].split(","))
    assert wanted.items() <= labels.items()
    labels_header = (ROOT / "operator" / "api" / "labels.h").read_text()
    assert '"training.kubeflow.org/job-role"' in labels_header
    assert selectors[1] == "training.kubeflow.org/job-role=worker,ringmaster.dev/job-uid"


def test_the_chart_brings_the_same_rules_and_the_same_dashboard():
    objects = render(metrics={"rules": {"enabled": True}, "dashboard": {"enabled": True}})
    assert only(objects, "PrometheusRule")["spec"] == RULES
    dashboard = next(o for o in objects if o["metadata"]["name"].endswith("-dashboard"))
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["ringmaster.json"]) == DASHBOARD


def test_the_dashboard_has_whole_panels_that_do_not_overlap():
    assert DASHBOARD["uid"] and DASHBOARD["schemaVersion"] >= 36
    taken, ids = set(), set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        assert panel["id"] not in ids and panel["title"]
        ids.add(panel["id"])
    for panel in panels():
        assert panel["description"] and panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert panel["targets"]
    variables = {v["name"] for v in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"]))) - {"__rate_interval", "__range"}
    assert used == variables
