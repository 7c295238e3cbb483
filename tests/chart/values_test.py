"""values.schema.json: every value is described and bounded, and a typo is an error that names it."""

import json

import pytest
import yaml

from conftest import CHART, helm_template, run, tool

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
# What Kubernetes (or the operator) checks, because its shape is theirs.
FREE = {"affinity", "config", "global"}


def properties(schema, path=()):
    """(path, schema) of everything below."""
    for name, child in schema.get("properties", {}).items():
        yield path + (name,), child
        yield from properties(child, path + (name,))
    if "items" in schema:
        yield path + ("[]",), schema["items"]
        yield from properties(schema["items"], path + ("[]",))


ALL = dict(properties(SCHEMA))
LEAVES = {p: s for p, s in ALL.items() if "properties" not in s and "[]" not in p and p[0] not in FREE}


def nested(path, value):
    for name in reversed(path):
        value = {name: value}
    return value


def value_at(path):
    value = VALUES
    for name in path:
        value = value.get(name, {})
    return value


def test_every_value_is_described():
    for path, schema in ALL.items():
        assert schema.get("description", "").endswith("."), ".".join(path)


def test_every_object_is_closed_and_every_number_and_word_is_bounded():
    for path, schema in ALL.items():
        if "properties" in schema:
            assert schema["additionalProperties"] is False, ".".join(path)
        if schema.get("type") == "integer":
            assert {"minimum", "maximum"} <= schema.keys(), ".".join(path)


def test_schema_and_values_have_the_same_names():
    def names(values, path=()):
        for name, value in values.items():
            yield path + (name,)
            if isinstance(value, dict) and "properties" in ALL.get(path + (name,), {}):
                yield from names(value, path + (name,))
    # What is empty by default names no parts.
    closed = {p for p in ALL if "[]" not in p and value_at(p[:-1])}
    assert set(names(VALUES)) == closed - {("global",)}


def test_the_chart_lints():
    done = run(tool("helm"), "lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [p for p in ALL if "properties" in ALL[p] and "[]" not in p] + [()],
                         ids=lambda p: ".".join(p) or "top")
def test_an_unknown_name_is_refused_and_named(path):
    objects, error = helm_template(nested(path + ("typo",), 1))
    assert objects is None
    assert "additional properties 'typo' not allowed" in error
    assert "at '%s'" % "".join("/" + p for p in path) in error


WRONG = {"integer": "many", "boolean": "yes", "string": 7, "array": "one", "object": "none"}


@pytest.mark.parametrize("path", LEAVES, ids=".".join)
def test_a_value_of_the_wrong_type_is_refused_and_named(path):
    schema = LEAVES[path]
    wrong = WRONG[schema["type"]] if "type" in schema else []
    objects, error = helm_template(nested(path, wrong))
    assert objects is None
    assert "at '/%s'" % "/".join(path) in error


@pytest.mark.parametrize("path", [p for p, s in LEAVES.items() if "enum" in s or "minimum" in s or
                                  "pattern" in s or "minLength" in s], ids=".".join)
def test_a_value_out_of_bounds_is_refused_and_named(path):
    schema = LEAVES[path]
    wrong = schema["maximum"] + 1 if "minimum" in schema else ("" if "minLength" in schema else "Not valid!")
    objects, error = helm_template(nested(path, wrong))
    assert objects is None
    assert "at '/%s'" % "/".join(path) in error


@pytest.mark.parametrize("values,where", [
    ({"imagePullSecrets": ["registry"]}, "/imagePullSecrets/0"),
    ({"imagePullSecrets": [{"nam": "x"}]}, "/imagePullSecrets/0"),
    ({"extraArgs": ["workers=3"]}, "/extraArgs/0"),
    ({"extraEnv": [{"value": "x"}]}, "/extraEnv/0"),
    ({"resources": {"requests": {"cpu": []}}}, "/resources/requests/cpu"),
    ({"podDisruptionBudget": {"maxUnavailable": "many"}}, "/podDisruptionBudget/maxUnavailable"),
    ({"podLabels": {"a": 1}}, "/podLabels/a"),
], ids=str)
def test_what_stands_in_lists_and_maps_is_checked_too(values, where):
    objects, error = helm_template(values)
    assert objects is None
    assert "at '%s'" % where in error
