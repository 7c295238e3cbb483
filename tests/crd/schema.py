"""Walks the CRD's schema: every node that a person can write below spec, and manifests that hold a value exactly there."""

import copy
import json
import pathlib
import re

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CRD = yaml.safe_load((REPOSITORY / "crds/ringmaster.dev_horovodjobs.yaml").read_text())
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

MINIMAL = {
    "apiVersion": "ringmaster.dev/v1alpha1", "kind": "HorovodJob", "metadata": {"name": "digits"},
    "spec": {"worker": {"replicas": 2, "template": {"spec": {"containers": [
        {"name": "worker", "image": "digits", "command": ["python3", "train.py"]}]}}}}}


class Node:
    """One place of the schema. `steps`: how to get there from the root: names, 0 for the element of a list, "*" for the value of
    a map."""

    def __init__(self, steps, schema, parent=None):
        self.steps, self.schema, self.parent = steps, schema, parent

    @property
    def path(self):
        """As errors name it: spec.worker.template.spec.containers[0].name; the value of a map has the key `x`."""
        return path_of(self.steps)

    @property
    def type(self):
        return "quantity or name" if self.schema.get("x-kubernetes-int-or-string") else self.schema["type"]

    @property
    def required(self):
        return self.parent is not None and self.steps[-1] in self.parent.schema.get("required", [])

    def holding(self, value):
        """A good manifest, but for `value` at this place."""
        job = copy.deepcopy(MINIMAL)
        at, schema = job, SCHEMA
        for step in self.steps[:-1]:
            key, schema = "x" if step == "*" else step, child(schema, step)
            if not has(at, key):
                put(at, key, good(schema))
            at = at[key]
        put(at, "x" if self.steps[-1] == "*" else self.steps[-1], copy.deepcopy(value))
        return job

    def __repr__(self):
        return self.path


def path_of(steps):
    text = ""
    for step in steps:
        step = "x" if step == "*" else step
        text += "[%d]" % step if isinstance(step, int) else ("." if text else "") + step
    return text


def child(schema, step):
    if step == 0:
        return schema["items"]
    if step == "*":
        return schema["additionalProperties"]
    return schema["properties"][step]


def has(container, key):
    return len(container) > key if isinstance(container, list) else key in container


def put(container, key, value):
    if isinstance(container, list) and len(container) <= key:
        container.append(value)
    else:
        container[key] = value


def good(schema):
    """The smallest value that the schema takes."""
    if schema.get("x-kubernetes-int-or-string"):
        return "1"
    kind = schema["type"]
    if kind == "object":
        return {name: good(schema["properties"][name]) for name in schema.get("required", [])}
    if kind == "array":
        return [good(schema["items"]) for _ in range(schema.get("minItems", 0))]
    if kind == "integer":
        return max(1, schema["minimum"])
    if kind == "boolean":
        return False
    if "enum" in schema:
        return schema["enum"][0]
    if any(rule["rule"] == "self == ''" for rule in schema.get("x-kubernetes-validations", [])):
        return ""  # no name is taken yet
    return "2026-01-31T12:00:00Z" if schema.get("format") == "date-time" else "x"


def full(schema):
    """A value with everything in it that the schema knows."""
    if schema.get("type") == "object":
        made = {name: full(below) for name, below in schema.get("properties", {}).items()}
        return dict(made, x=full(schema["additionalProperties"])) if "additionalProperties" in schema else made
    if schema.get("type") == "array":
        return [full(schema["items"])]
    return good(schema)


def nodes():
    """Every place below spec, and spec itself."""
    found = []

    def walk(node):
        found.append(node)
        for name, schema in node.schema.get("properties", {}).items():
            walk(Node(node.steps + (name,), schema, node))
        if "items" in node.schema:
            walk(Node(node.steps + (0,), node.schema["items"], node))
        if "additionalProperties" in node.schema:
            walk(Node(node.steps + ("*",), node.schema["additionalProperties"], node))
    walk(Node(("spec",), SCHEMA["properties"]["spec"], Node((), SCHEMA)))
    return found


def rules():
    """All (path of the schema node, rule) of the schema."""
    return [(node.path, rule["rule"]) for node in nodes() for rule in node.schema.get("x-kubernetes-validations", [])]


def matches(schema, text):
    return "pattern" not in schema or re.search(schema["pattern"], text) is not None


def dumps(value):
    return json.dumps(value, sort_keys=True)
