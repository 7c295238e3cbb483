"""What a person would write wrongly, made from the schema: for each node the wrong values and the path that the error has to
name. A schema keyword that nobody has thought of here is an error, so that no field goes without its cases."""

import schema

KNOWN = {"type", "description", "default", "minimum", "maximum", "format", "enum", "minLength", "maxLength", "pattern", "nullable",
         "items", "minItems", "maxItems", "properties", "required", "additionalProperties", "maxProperties",
         "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
         "x-kubernetes-int-or-string"}

# The formats that say no more than the bounds that stand beside them.
PLAIN_FORMATS = {"int32", "int64", "date-time"}


class Case:
    """`path`: the field that the error has to name; a field below it does as well where an object stands for something else."""

    def __init__(self, what, manifest, path):
        self.what, self.manifest, self.path = what, manifest, path

    def is_named_by(self, paths):
        return any(path == self.path or path.startswith(self.path + ".") for path in paths)

    def __repr__(self):
        return "%s at %s" % (self.what, self.path)


def of(node):
    """All cases of one node."""
    strange = set(node.schema) - KNOWN
    assert not strange, "%s: no cases are made for %s: write some" % (node, strange)
    assert node.schema.get("format", "int32") in PLAIN_FORMATS, node
    made = [Case("%s as %s" % (what, schema.dumps(value)[:60]), node.holding(value), node.path)
            for what, value in wrong_values(node)]
    made += list({"object": of_object, "array": of_list}.get(node.type, lambda _: [])(node))
    if node.required:
        made.append(Case("missing", without(node), node.path))
    return made


def wrong_values(node):
    yield from {"integer": integers, "boolean": booleans, "string": strings, "array": lists, "object": objects,
                "quantity or name": quantities}[node.type](node.schema)
    if node.required or node.steps[-1] == 0:
        yield "null", None  # elsewhere it counts as absent


def integers(field):
    yield "text", "three"
    yield "a number in quotes", "3"
    yield "a fraction", 1.5
    yield "a boolean", True
    yield "a list", [1]
    yield "an object", {"value": 1}
    yield "too small", field["minimum"] - 1
    yield "too large", field["maximum"] + 1
    if field["minimum"] >= 0:
        yield "negative", -1


def booleans(_):
    yield "text", "true"
    yield "yes", "yes"
    yield "a number", 1
    yield "a list", [True]
    yield "an object", {}


def strings(field):
    yield "a number", 3
    yield "a boolean", True
    yield "a list", ["x"]
    yield "an object", {"name": "x"}
    for word in field.get("enum", []):
        if word.swapcase() not in field["enum"]:
            yield "other case", word.swapcase()
    if "enum" in field:
        yield "unknown word", "Sometimes"
    if "enum" in field and "" not in field["enum"] or field.get("minLength"):
        yield "empty", ""
    if "maxLength" in field:
        yield "too long", "x" * (field["maxLength"] + 1)
    if "pattern" in field:
        yield "not of the pattern", "-not here-"
    if field.get("format") == "date-time":
        yield "no time", "yesterday"


def quantities(field):
    yield "a boolean", True
    yield "a list", [1]
    yield "an object", {"value": 1}
    if "pattern" in field:
        for text in ("two", "4 GB", "", "1,5", "1" * 100000 + "x"):
            yield "no quantity", text


def lists(field):
    yield "text", "x"
    yield "one element without its list", schema.full(field["items"]) if field["items"].get("type") != "array" else 1
    yield "a number", 3
    yield "an object", {"x": 1}
    if "maxItems" in field:
        yield "too many", [schema.good(field["items"])] * (field["maxItems"] + 1)
    if field.get("minItems"):
        yield "too few", []


def objects(_):
    yield "text", "x"
    yield "a number", 3
    yield "a list", []
    yield "a list of it", [{}]


def of_list(node):
    if node.schema.get("x-kubernetes-list-type") not in ("set", "map"):
        return
    one = schema.good(node.schema["items"])
    path = schema.path_of(node.steps + (1,))
    if node.path == "spec.worker.template.spec.containers":
        one = schema.MINIMAL["spec"]["worker"]["template"]["spec"]["containers"][0]
    yield Case("the same element twice", node.holding([one, one]), path)


def of_object(node):
    if "additionalProperties" in node.schema:
        if "maxProperties" in node.schema:
            many = {"k%d" % i: schema.good(node.schema["additionalProperties"]) for i in range(node.schema["maxProperties"] + 1)}
            yield Case("too many entries", node.holding(many), node.path)
        return
    known = node.schema.get("properties", {})
    for typo in ["zzzz"] + [swapped(name) for name in known] + [name.lower() for name in known]:
        if typo not in known:
            yield Case("unknown field", beside(node, typo), schema.path_of(node.steps + (typo,)))


def swapped(name):
    """The name with two letters in the wrong order, where that shows."""
    for i in range(len(name) // 2, len(name) - 1):
        if name[i] != name[i + 1]:
            return name[:i] + name[i + 1] + name[i] + name[i + 2:]
    return name + name[-1]


def beside(node, name):
    """A manifest with one field more in the object at `node`, beside what has to be there."""
    return schema.Node(node.steps + (name,), {}, node).holding(1)


def without(node):
    manifest = node.holding(None)
    at = manifest
    for step in node.steps[:-1]:
        at = at["x" if step == "*" else step]
    del at[node.steps[-1]]
    return manifest
