"""Every field of a HorovodJob wrong in every way that a person would get it wrong: parser, embedded and real API server refuse it
and name the field. The cases come from the schema, so a new field has its cases at once, and a rule without one fails."""

import copy
import re

import pytest

import cases
import rule_cases
import schema


# The real API server puts the type of the value in front of a rule's message, that of 1.37 not any more.
WORDS_OF_THE_SERVER = re.compile(r'^Invalid value: ("[a-z]+": )?')


@pytest.fixture(scope="session")
def judges(helper, real):
    return [helper.parser, helper.embedded] + ([real] if real else [])


@pytest.fixture(scope="session")
def servers(helper, real):
    return [helper.embedded] + ([real] if real else [])


def changed(fields):
    job = copy.deepcopy(schema.MINIMAL)
    for path, value in fields.items():
        at = job
        *folders, last = path.split(".")
        for folder in folders:
            at = at[folder]
        at[last] = value
    return job


def full_job():
    job = dict(copy.deepcopy(schema.MINIMAL), spec=schema.full(schema.SCHEMA["properties"]["spec"]))
    containers = job["spec"]["worker"]["template"]["spec"]["containers"]
    containers.append(copy.deepcopy(containers[0]))
    containers[0]["name"] = "worker"
    del containers[0]["restartPolicy"], containers[0]["restartPolicyRules"]  # refused there
    del job["spec"]["runPolicy"]["schedulingPolicy"]["topology"]["preferred"]  # one of the two
    return job


NODES = schema.nodes()


@pytest.mark.parametrize("node", NODES, ids=repr)
def test_wrong_value_is_refused_and_its_field_named(node, judges):
    made = cases.of(node)
    assert made, "no case for this field"
    wrong = []
    for case in made:
        for judge in judges:
            _, refusal = judge.create(case.manifest)
            if refusal is None:
                wrong.append("%s takes: %s" % (judge.name, case))
            elif not case.is_named_by(refusal.paths()):
                wrong.append("%s, %s: names %s: %s" % (judge.name, case, refusal.paths(), refusal))
    assert not wrong, "\n".join(wrong)


def test_the_schema_was_walked():
    assert len(NODES) > 500
    paths = {node.path for node in NODES}
    assert {"spec.elasticPolicy.allowedSizes[0]", "spec.worker.template.spec.containers[0].env[0].valueFrom",
            "spec.worker.template.metadata.labels.x"} <= paths


def test_every_rule_has_a_case():
    table = {**rule_cases.CREATE, **rule_cases.UPDATE}
    without = [rule for rule in schema.rules() if not any(rule[0] == path and rule[1].startswith(begin) for path, begin in table)]
    assert not without
    stale = [key for key in table if not any(path == key[0] and rule.startswith(key[1]) for path, rule in schema.rules())]
    assert not stale


CREATE = [case for group in rule_cases.CREATE.values() for case in group]


@pytest.mark.parametrize("fields, path, words", CREATE, ids=[case[2][:60] for case in CREATE])
def test_rule_refuses_in_the_same_words_everywhere(fields, path, words, judges):
    for judge in judges:
        _, refusal = judge.create(changed(fields))
        assert refusal, judge.name
        said = [WORDS_OF_THE_SERVER.sub("", one) for one in refusal.words_at(path)]
        assert words in said, "%s: %s" % (judge.name, refusal)


@pytest.mark.parametrize("fields", rule_cases.NEAR, ids=lambda fields: str(fields)[:60])
def test_names_beside_those_that_are_taken_are_free(fields, judges):
    for judge in judges:
        _, refusal = judge.create(changed(fields))
        assert refusal is None, "%s: %s" % (judge.name, refusal)


@pytest.fixture
def running(servers):
    """A job on each server that is not suspended."""
    job = changed({"metadata.name": "running", "spec.elasticPolicy": {"maxReplicas": 8}})
    for server in servers:
        _, refusal = server.create(job, dry_run=False)
        assert refusal is None, refusal
    yield "running"
    for server in servers:
        server.delete("running")


def test_what_has_to_stay_is_refused_by_name(servers, running):
    for group in rule_cases.UPDATE.values():
        for patch, path, words in group:
            for server in servers:
                _, refusal = server.patch(running, {"spec": patch})
                assert refusal, "%s takes %s" % (server.name, patch)
                said = [WORDS_OF_THE_SERVER.sub("", one) for one in refusal.words_at(path)]
                assert said == [words], "%s: %s" % (server.name, refusal)


def test_what_may_change_while_the_job_runs_is_taken(servers, running):
    for patch in rule_cases.ALLOWED:
        for server in servers:
            _, refusal = server.patch(running, {"spec": patch})
            assert refusal is None, "%s, %s: %s" % (server.name, patch, refusal)


def test_template_and_collectives_of_a_suspended_job_may_change(servers):
    job = changed({"metadata.name": "asleep", "spec.runPolicy": {"suspend": True}})
    patch = {"spec": {"worker": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}, "collectives": {"backend": "Cpu"},
                      "runPolicy": {"suspend": False}}}
    for server in servers:
        assert server.create(job, dry_run=False)[1] is None
        assert server.patch("asleep", patch)[1] is None, server.name
        server.delete("asleep")


@pytest.mark.parametrize("replicas", [9, 10001, -1])
def test_scaling_out_of_bounds_names_replicas(replicas, servers, running):
    for server in servers:
        _, refusal = server.patch(running, {"spec": {"replicas": replicas}}, "/scale")
        assert refusal, server.name
        assert any("replicas" in path for path in refusal.paths()), "%s: %s" % (server.name, refusal)


@pytest.mark.parametrize("fields, words, path", rule_cases.OBJECT, ids=lambda value: str(value)[:40])
def test_what_is_wrong_with_the_object_itself_is_named(fields, words, path, judges):
    for judge in judges:
        _, refusal = judge.create(changed(fields))
        assert refusal, judge.name
        if judge.name == "parser":
            assert path in refusal.paths(), refusal
        else:
            assert words in refusal.text, "%s: %s" % (judge.name, refusal)


def test_everything_that_the_schema_knows_survives(judges):
    job = full_job()
    for judge in judges:
        stored, refusal = judge.create(job)
        assert refusal is None, "%s: %s" % (judge.name, refusal)
        assert stored["spec"] == job["spec"], judge.name


def test_defaults_are_the_same_on_both_servers(servers):
    elaborate = changed({"spec.failurePolicy": {"rules": [{"onReasons": ["Evicted"], "action": "ReplacePod"}]},
                         "spec.worker.template.metadata": {"creationTimestamp": None, "labels": {"a": None}},
                         "spec.elasticPolicy": {"maxReplicas": None, "minReplicas": None}, "spec.runPolicy": None})
    elaborate["spec"]["worker"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    for job in (schema.MINIMAL, elaborate):
        stored = [server.create(job)[0]["spec"] for server in servers]
        assert stored[0]["runPolicy"]["backoffLimit"] == 6
        assert all(spec == stored[0] for spec in stored[1:]), stored


def test_a_status_in_the_manifest_is_dropped(servers):
    job = changed({"status": {"epoch": 7, "state": "Running"}})
    for server in servers:
        stored, refusal = server.create(job)
        assert refusal is None, refusal
        assert "status" not in stored, server.name
