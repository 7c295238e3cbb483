"""What the documents point at is there: links between them, headings, and files and folders named in the text."""

import pathlib
import re
import subprocess
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                         check=True).stdout.split()
PAGES = sorted(name for name in TRACKED if name.endswith(".md") and (ROOT / name).exists())
TOP = sorted({name.split("/")[0] for name in TRACKED if "/" in name})
BASENAMES = {pathlib.PurePath(name).name for name in TRACKED if (ROOT / name).exists()}
MADE = ("build",)  # folders that a build makes


def text_of(page):
    return (ROOT / page).read_text()


def without_blocks(text):
    return re.sub(r"``.*?```", "", text, flags=re.S)


def headings(page):
    """As GitHub makes anchors of them."""
    titles = re.findall(r"^#+ (.*)$", without_blocks(text_of(page)), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", without_blocks(text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        assert file.exists(), "%s: there is no %s" % (page, name)
        assert not anchor or anchor in headings(file.resolve().relative_to(ROOT)), "%s: %s has no #%s" % (page, name or page, anchor)


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page):
    """Words in backticks that begin with a top folder, such as `operator/api`."""
    for name in re.findall(r"`((?:%s)/[\w./-]*)[^`]*`" % "|".join(map(re.escape, TOP)), without_blocks(text_of(page))):
        if name.split("/")[0] not in MADE:
            assert (ROOT / name.rstrip("./")).exists(), "%s: there is no %s" % (page, name)


def test_sources_that_are_named_without_their_folder_are_there():
    """In the page that tells contributors where to go, such as `request.cc`."""
    names = re.findall(r"`(?:[^`]*/)?([\w.-]+\.(?:cc|h|py|md|yaml|json|tpl))`", without_blocks(text_of("CONTRIBUTING.md")))
    assert sorted(set(names) - BASENAMES - {"foo.cc", "foo_test.cc"}) == []
    assert len(names) > 30


def test_functions_in_the_tables_of_files_are_in_those_files():
    """Rows of `file`, `function` in architecture.md; one table names its files from operator/. A .cc stands for its .h too."""
    rows = re.findall(r"^\| `([\w/.]+)`[^|]* \| (`[^|]*`) \|", text_of("docs/architecture.md"), re.M)
    assert len(rows) > 40
    missing = []
    for name, functions in rows:
        files = [file for top in ("", "operator") for file in (ROOT / top / name).parent.glob(pathlib.PurePath(name).stem + ".*")]
        text = "".join(file.read_text() for file in files)
        missing += [(name, function) for function in re.findall(r"`(\w+)`", functions) if not re.search(r"\b%s\b" % function, text)]
    assert missing == []


@pytest.mark.parametrize("package, page", [("ringmaster", "docs/python.md"), ("ringmaster/torch", "docs/python.md"),
                                           ("ringmaster/torch", "docs/horovod.md")])
def test_the_pages_of_python_have_every_public_name(package, page):
    source = text_of("collectives/python/%s/__init__.py" % package)
    names = re.findall(r'"(\w+?)(?:_async)?_?"', re.search(r"__all__ = \[(.*?)\]", source, re.S).group(1))
    assert len(names) > 10
    assert [name for name in names if not re.search(r"\b%s(_async)?\b" % name, text_of(page))] == []


def test_the_picture_of_the_readme_is_small_drawn_from_a_run_and_for_light_and_dark():
    beginning = text_of("README.md").split("```")[0]
    assert "](docs/images/run.svg)" in beginning, "it is not on the first screen"
    svg = text_of("docs/images/run.svg")
    assert len(svg) < 150_000
    texts = ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any(re.search(r"\d+ steps on one machine, 0 steps lost", text) for text in texts), texts
    assert any(text.startswith("a worker is killed") for text in texts), texts
    dark = re.search(r"@media \(prefers-color-scheme: dark\) \{(.*?)\n\}", svg, re.S)[1]
    assert "text {" in dark and ".ground {" in dark


def stem(name):
    """As the tables name it: without the endings of its forms, and an option without its `--no-`."""
    return re.sub(r"(?<!sparse_allreduce)(_async)?_?$", "", re.sub("^--no-", "--", name))


def test_horovods_names_are_in_the_page_about_them():
    """Each public name of Horovod, and each option of its command: same, better, or said not to be there."""
    rows = [line.split() for line in text_of("tests/docs/horovod_names.txt").splitlines() if not line.startswith("#")]
    assert len(rows) > 250 and len({module for module, _ in rows}) > 12
    page = text_of("docs/horovod.md")
    missing = [(module, name) for module, name in rows if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(name), page)]
    assert [(module, name) for module, name in missing if not re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(stem(name)), page)] == []


def test_every_top_folder_says_what_lives_in_it():
    assert [name for name in TOP if not name.startswith(".") and name != "docs" and name + "/README.md" not in PAGES] == []
