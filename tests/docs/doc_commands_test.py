"""Every command that the docs show is typed by a test, or a test that runs it is named and has its words."""

import pathlib
import re

import pytest

import doc_commands
from doc_commands import ELSEWHERE, LANGUAGES, NOT_RUN, ROOT, TYPED, commands, page_file, rows_of

PAGES = sorted(["README", "CONTRIBUTING", *(page.stem for page in (ROOT / "docs").glob("*.md"))])
MOST_NOT_RUN = 10
# What runs tests is no test that something has to start.
STARTERS = ("hack/test", "hack/lib/common.sh")


def files_of(test):
    """It, and the files that it imports or starts: what it does is mostly written there."""
    found, new = set(), [ROOT / test]
    while new:
        file = new.pop()
        if file in found or not file.exists():
            continue
        found.add(file)
        text = file.read_text()
        if file.suffix == ".py":
            names = [*re.findall(r"^(?:from|import) (\w+)", text, re.M), "conftest"]
            new += [folder / (name + ".py") for name in names for folder in (file.parent, ROOT / "tests/cluster")]
        new += [ROOT / name for name in re.findall(r"hack/lib/\w+\.py|examples/digits/job.yaml", text)]
    return found


def text_of(test):
    return "".join(file.read_text() for file in files_of(test))


def has(text, word):
    return re.search(r"(?<![a-zA-Z0-9-])%s(?![a-zA-Z0-9-])" % re.escape(word), text) is not None


def is_started(test):
    """Whether CMake knows it, or the whole folder."""
    file = ROOT / test
    if test in STARTERS or file.name == "CMakeLists.txt":
        return True
    lists = [folder / "CMakeLists.txt" for folder in (file.parent, file.parent.parent)]
    text = "".join(each.read_text() for each in lists if each.exists())
    return re.search(r"\b%s\b" % re.escape(file.stem), text) is not None or re.search(r"rm_python_test\(|pytest .*_SOURCE_DIR}\)", text) is not None


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page):
    """Else what is in it may be a command that nobody sees."""
    fences = re.findall(r"^ *```(.*)$", page_file(page).read_text(), re.M)
    assert len(fences) % 2 == 0 and not any(fences[1::2]), "a block is not closed"
    assert [name for name in fences[::2] if name not in LANGUAGES] == []
    for command, shown in commands(page_file(page).read_text()):
        assert command.strip() and command[0] not in "$#", command
    for language, body in doc_commands.blocks(page_file(page).read_text()):
        assert language != "console" or body.startswith(("$ ", "# ")), "a console begins with a command:\n" + body


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_typed_or_named_with_its_test(page):
    missing = [command for command, _ in commands(page_file(page).read_text()) if page not in TYPED and not rows_of(page, command)]
    assert missing == []


@pytest.mark.parametrize("page, beginning, test, words", ELSEWHERE)
def test_the_test_that_is_named_has_the_words_of_the_command(page, beginning, test, words):
    shown = [command for command, _ in commands(page_file(page).read_text()) if rows_of(page, command) == [(page, beginning, test, words)]]
    assert shown, "%s shows no such command: %s" % (page, beginning)
    assert (ROOT / test).exists(), "there is no " + test
    assert is_started(test), "nothing starts " + test
    text = text_of(test)
    assert [word for word in words.split() if not has(text, word)] == [], test


def test_what_nothing_runs_is_little_and_has_a_reason():
    for page, beginning, why in NOT_RUN:
        assert len(why) > 10
        assert any(rows_of(page, command) == [(page, beginning, why)] for command, _ in commands(page_file(page).read_text())), beginning
    assert len(NOT_RUN) <= MOST_NOT_RUN


def test_a_command_that_goes_on_is_one_and_what_it_prints_is_not_part_of_it():
    text = """
```console
$ helm install a \\
  --set b=c       # why
printed
$ for a in 1; do
    one
  done
# root | 
  more
```
```text
$ no command
```
  ```console
$ outer
  ```
"""
    assert commands(text)[:3] == [("helm install a \\\n  --set b=c       # why", ["printed"]), ("for a in 1; do\n    one\n  done", []), ("root | \n  more", [])]
