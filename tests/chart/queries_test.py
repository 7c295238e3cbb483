"""The questions of docs/metrics.md: each query answers its question. Prometheus' own evaluation (promtool test rules) is given made-up
series of two hours, in which for every question something is the case and something else, much like it, is not."""

import re

import pytest
import yaml

from conftest import ROOT, run, tool
from monitoring_test import METRICS, metrics_of

PAGE = (ROOT / "docs" / "metrics.md").read_text()
QUERIES = dict(re.findall(r"^\*\*(.+?)\*\*.*?\n\n```promql\n(.*?)```", PAGE, re.M | re.S))
OF_TARGETS = {"instance", "namespace", "le"}

# Job `good` trains, `stands` has not made a step since the first hour, `plain` counts no steps but uses collectives, `foreign` uses those of others, `waits` has been
# Pending for 30 minutes, then Starting for 30, and is Held. Worker 1 of `good` is the slow one.
SERIES = """
ringmaster_operator_leader{instance="a"}                                                           1x120
ringmaster_operator_leader{instance="b"}                                                           0x120
ringmaster_operator_queue_depth{instance="a"}                                                      7x120
ringmaster_operator_queue_depth{instance="b"}                                                      0x120
ringmaster_operator_sidecars{instance="a"}                                                         3x120
ringmaster_operator_api_throttled_seconds_total{instance="a"}                                      0+30x120
ringmaster_operator_api_request_seconds_bucket{verb="get",resource="pods",code="200",le="0.5"}     0+60x120
ringmaster_operator_api_request_seconds_bucket{verb="get",resource="pods",code="200",le="1"}       0+60x120
ringmaster_operator_api_request_seconds_bucket{verb="get",resource="pods",code="200",le="+Inf"}    0+60x120
ringmaster_operator_recovery_seconds_bucket{phase="total",cause="PodLost",le="0"}                  0x120
ringmaster_operator_recovery_seconds_bucket{phase="total",cause="PodLost",le="2"}                  0+60x120
ringmaster_operator_recovery_seconds_bucket{phase="total",cause="PodLost",le="+Inf"}               0+60x120
ringmaster_operator_recovery_seconds_bucket{phase="total",cause="Rejoin",le="2"}                   0x120
ringmaster_operator_recovery_seconds_bucket{phase="total",cause="Rejoin",le="+Inf"}                0x120
ringmaster_operator_recovery_seconds_bucket{phase="stop",cause="PodLost",le="60"}                  0+60x120
ringmaster_operator_recovery_seconds_bucket{phase="stop",cause="PodLost",le="+Inf"}                0+60x120
ringmaster_job_state{job_name="good",namespace="n",state="Running"}                                1x120
ringmaster_job_state{job_name="stands",namespace="n",state="Running"}                              1x120
ringmaster_job_state{job_name="plain",namespace="n",state="Running"}                               1x120
ringmaster_job_state{job_name="foreign",namespace="n",state="Running"}                             1x120
ringmaster_job_state{job_name="waits",namespace="n",state="Pending"}                               1x29 stale
ringmaster_job_state{job_name="waits",namespace="n",state="Starting"}                              _x30 1x29 stale
ringmaster_job_state{job_name="waits",namespace="n",state="Held"}                                  _x60 1x60
ringmaster_job_state{job_name="over",namespace="n",state="Succeeded"}                              1x120
ringmaster_job_pods{job_name="good",namespace="n",phase="Running"}                                 2x120
ringmaster_job_pods{job_name="good",namespace="n",phase="Pending"}                                 1x120
ringmaster_job_pods{job_name="stands",namespace="n",phase="Running"}                               2x120
ringmaster_job_pods{job_name="over",namespace="n",phase="Running"}                                 0x120
ringmaster_job_pods_wanted{job_name="good",namespace="n"}                                          3x120
ringmaster_job_pods_wanted{job_name="stands",namespace="n"}                                        2x120
ringmaster_job_pods_wanted{job_name="over",namespace="n"}                                          2x120
ringmaster_job_steps_lost_total{job_name="good",namespace="n"}                                     5x120
ringmaster_job_steps_lost_total{job_name="stands",namespace="n"}                                   0x60 10x60
ringmaster_sidecar_step{job_name="good",namespace="n",pod="g-0"}                                   0+240x120
ringmaster_sidecar_step{job_name="good",namespace="n",pod="g-1"}                                   0+240x120
ringmaster_sidecar_step{job_name="stands",namespace="n",pod="s-0"}                                 0+60x60 3600x60
ringmaster_sidecar_step{job_name="plain",namespace="n",pod="p-0"}                                  0x120
ringmaster_sidecar_step{job_name="foreign",namespace="n",pod="f-0"}                                0x120
ringmaster_sidecar_stalled_tensors{job_name="good",namespace="n",pod="g-0"}                        0x120
ringmaster_sidecar_stalled_tensors{job_name="stands",namespace="n",pod="s-0"}                      0x60 3x60
ringmaster_sidecar_worker_seconds_total{job_name="good",namespace="n",pod="g-0",slot="0"}          0+60x120
ringmaster_sidecar_worker_seconds_total{job_name="good",namespace="n",pod="g-1",slot="0"}          0+60x120
ringmaster_sidecar_worker_collective_seconds_total{job_name="good",namespace="n",pod="g-0",slot="0",state="waiting"}   0+45x120
ringmaster_sidecar_worker_collective_seconds_total{job_name="good",namespace="n",pod="g-1",slot="0",state="waiting"}   0+15x120
ringmaster_sidecar_worker_collective_seconds_total{job_name="good",namespace="n",pod="g-0",slot="0",state="blocked"}   0+60x120
ringmaster_sidecar_worker_collective_seconds_total{job_name="good",namespace="n",pod="g-1",slot="0",state="blocked"}   0+30x120
ringmaster_sidecar_worker_collective_seconds_total{job_name="good",namespace="n",pod="g-0",slot="0",state="running"}   0+15x120
ringmaster_sidecar_worker_collective_seconds_total{job_name="good",namespace="n",pod="g-1",slot="0",state="running"}   0+15x120
ringmaster_sidecar_worker_collective_bytes_total{job_name="good",namespace="n",pod="g-0",slot="0"} 0+30000x120
ringmaster_sidecar_worker_collective_bytes_total{job_name="good",namespace="n",pod="g-1",slot="0"} 0+30000x120
ringmaster_sidecar_worker_collective_bytes_total{job_name="stands",namespace="n",pod="s-0",slot="0"}  0+30000x60 1800000x60
ringmaster_sidecar_worker_collective_bytes_total{job_name="plain",namespace="n",pod="p-0",slot="0"}   0+30000x120
ringmaster_sidecar_worker_collective_bytes_total{job_name="foreign",namespace="n",pod="f-0",slot="0"} 0x120
ringmaster_sidecar_rebuilds_total{job_name="good",namespace="n",pod="g-0",reason="PodLost"}        0+1x120
ringmaster_sidecar_rebuilds_total{job_name="good",namespace="n",pod="g-1",reason="PodLost"}        0+1x120
ringmaster_sidecar_rebuilds_total{job_name="stands",namespace="n",pod="s-0",reason="PodLost"}      4x120
ringmaster_sidecar_worker_exits_total{job_name="good",namespace="n",pod="g-1",exit_code="137"}     0+1x120
ringmaster_sidecar_worker_exits_total{job_name="good",namespace="n",pod="g-0",exit_code="137"}     9x120
ringmaster_sidecar_worker_exits_total{job_name="stands",namespace="n",pod="s-0",exit_code="1"}     _x100 1x20
ringmaster_sidecar_worker_exits_total{job_name="good",namespace="n",pod="g-0",exit_code="0"}       0+1x120
ringmaster_sidecar_reported_value{job_name="good",namespace="n",pod="g-0",name="loss"}             0.5x120
ringmaster_sidecar_reported_value{job_name="good",namespace="n",pod="g-1",name="loss"}             1.5x120
ringmaster_sidecar_reported_value{job_name="good",namespace="n",pod="g-1",name="accuracy"}         9x120
"""

GOOD, STANDS, WAITS = ('job_name="%s", namespace="n"' % name for name in ("good", "stands", "waits"))
# Two hours after the beginning.
ANSWERS = {
    "Which jobs do not train now, and in what state are they?": {'ringmaster_job_state{%s, state="Held"}' % WAITS: 1},
    "Which jobs run but stand still?": {'ringmaster_job_state{%s, state="Running"}' % STANDS: 1},
    "Do ranks wait for a tensor that other ranks have not asked for?": {"{%s}" % STANDS: 3},
    "How long does a step take, in seconds?": {"{%s}" % GOOD: 0.25},
    "Which worker is slow?": {'{%s, pod="g-1", slot="0"}' % GOOD: 0.25},
    "How much of its time does a job stand still in collectives?": {"{%s}" % GOOD: 0.75},
    "How fast do tensors go through collectives, in bytes a second?": {"{%s}" % GOOD: 2000},
    "How often does the view of a job change, and why?": {'{%s, reason="PodLost"}' % GOOD: 60},
    "How long do jobs stand still when their view changes?": {'{cause="PodLost"}': 1.9},
    "How long did jobs wait before they trained?": {'{%s, state="Pending"}' % WAITS: 1800, '{%s, state="Starting"}' % WAITS: 1800},
    "Which jobs have fewer pods than they were asked for, and how many are missing?": {"{%s}" % GOOD: 1},
    "Which workers die, and how?": {'{%s, pod="g-1", exit_code="137"}' % GOOD: 60, '{%s, pod="s-0", exit_code="1"}' % STANDS: 1},
    "Were steps lost?": {"{%s}" % STANDS: 10},
    "Does one operator lead?": {"{}": 1},
    "Is the operator behind?": {"{}": 7},
    "Does the operator wait for its own rate limit?": {"{}": 0.5},
    "Does the API server answer the operator in time?": {'{resource="pods", verb="get"}': 0.475},
    "Do all pods that run reach the operator?": {"{}": 1},
    "What does the script report?": {"{%s}" % GOOD: 1},
}


def test_every_question_has_a_query_and_an_answer_here():
    assert list(QUERIES) == list(ANSWERS)
    assert PAGE.count("```promql") == len(QUERIES)


def test_queries_read_only_metrics_and_labels_that_are_documented():
    for question, query in QUERIES.items():
        found = list(metrics_of(query))
        assert found, question
        for name, labels in found:
            assert labels <= METRICS[name][1] | OF_TARGETS, "%s in %s" % (name, question)


def ask(question, series, folder):
    samples = [{"labels": labels, "value": value} for labels, value in ANSWERS[question].items()]
    query = QUERIES[question]
    if all(labels.startswith("{") for labels in ANSWERS[question]):
        query = "round(%s, 0.001)" % query  # rates are computed in floating point; it takes the name off
    text = {"rule_files": [], "evaluation_interval": "1m", "tests": [{
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [{"expr": query, "eval_time": "2h", "exp_samples": samples}]}]}
    (folder / "queries.yaml").write_text(yaml.safe_dump(text))
    done = run(tool("promtool"), "test", "rules", folder / "queries.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def made_up_series():
    return [re.match(r"(\S+)\s+(.*)", line).groups() for line in SERIES.strip().splitlines()]


@pytest.mark.parametrize("question", ANSWERS)
def test_the_query_answers_the_question(question, tmp_path):
    ask(question, made_up_series(), tmp_path)


def test_pods_are_missing_once_where_the_operator_is_scraped_twice(tmp_path):
    twice = [(name.replace("{", '{job="%s",' % job), values) for name, values in made_up_series() for job in ("monitor", "annotations")]
    ask("Which jobs have fewer pods than they were asked for, and how many are missing?", twice, tmp_path)
