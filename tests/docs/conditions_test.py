"""The conditions that docs/operations.md explains are in the list of the CRD, which docs/api.md and `kubectl explain` show."""

import pathlib
import re

import yaml

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def test_every_condition_that_is_explained_is_listed():
    explained = set(re.findall(r"^\| `(\w+)` (?:True|False) \|", (REPOSITORY / "docs/operations.md").read_text(), re.M))
    crd = yaml.safe_load((REPOSITORY / "crds/ringmaster.dev_horovodjobs.yaml").read_text())
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    listed = set(re.findall(r"\w+", status["conditions"]["description"].split(", each")[0]))
    assert len(explained) > 8 and explained <= listed, explained - listed
