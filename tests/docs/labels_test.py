"""The tables of docs/contracts.md name every label, annotation, finalizer and gate of operator/api/labels.h, and no other of ours."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = "ringmaster.dev/"


def constants():
    """{value: constant}"""
    text = (ROOT / "operator/api/labels.h").read_text()
    return {value: name for name, value in
            re.findall(r'constexpr char (k\w*(?:Label|Annotation|Finalizer|Gate|OperatorName))\[\] =\s*"([^"]+)"', text)}


def named():
    """In the first column of the tables; annotations stand there without their prefix."""
    section = re.search(r"^## 1\. .*?(?=^## 2\.)", (ROOT / "docs/contracts.md").read_text(), re.M | re.S)[0]
    annotations, others = re.search(r"^Annotations, .*?(?=^Labels, )", section, re.M | re.S)[0], section[section.index("\nLabels, "):]

    def first_column(text):
        return {name for row in re.findall(r"^\| (`[^|]*) \|", text, re.M) for name in re.findall(r"`([^`]+)`", row)}
    return {OURS + name for name in first_column(annotations)} | first_column(others)


def test_every_label_and_annotation_is_in_a_table():
    assert len(constants()) > 25
    assert sorted(set(constants()) - named()) == []


def test_every_name_of_the_tables_is_a_constant():
    assert sorted(named() - set(constants())) == []


def test_no_other_source_spells_one_of_ours():
    """A finalizer or an annotation whose name stands in another file is missed by who reads labels.h."""
    pattern = re.compile(r'constexpr char k\w+(?:Label|Annotation|Finalizer|Gate)\[\] =\s*"%s' % re.escape(OURS))
    files = [file for file in (ROOT / "operator").rglob("*.h") if file.name != "labels.h" and pattern.search(file.read_text())]
    assert files == []
