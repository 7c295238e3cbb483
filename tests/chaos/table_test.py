"""The table of docs/reliability.md: what the command that the page shows prints has the page's columns, and the page's rows have its names."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = (FOLDER.parents[1] / "docs/reliability.md").read_text()
COMMAND = re.search(r"^\$ tests/chaos/(table\.py) (figures\.jsonl)$", PAGE, re.M)


def printed(folder, rounds, found=()):
    """(exit status, lines) of the command, at the figures of one run of `rounds`: (kinds, pause)."""
    lines = [{"kinds": kinds, "pause": pause} for kinds, pause in rounds] + [{"seed": 7, "steps": 120, "found": list(found)}]
    (folder / COMMAND[2]).write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = subprocess.run([sys.executable, FOLDER / COMMAND[1], COMMAND[2]], cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_the_columns_are_those_of_the_page_and_a_row_is_of_a_kind(tmp_path):
    status, lines = printed(tmp_path, [(["pod_kill"], 0.2), (["pod_kill"], 1.5), (["cut", "drain"], 3.25)])
    assert status == 0
    assert "\n".join(lines[:2]) in PAGE
    assert lines[2:] == ["| pod killed | 2 | 0 | 0 | 0 | 1.50 s | 1.50 s | 1.50 s |",
                         "| two of these at once | 1 | 0 | 0 | 0 | 3.25 s | 3.25 s | 3.25 s |", "",
                         "4 faults in 1 runs with 120 steps; runs in which something was found: 0"]


def test_what_was_found_is_said_with_its_seed_and_counts_for_the_last_round(tmp_path):
    status, lines = printed(tmp_path, [(["drain"], 0.2), (["pod_kill"], None), (["pod_kill"], 0.5)], [["hang", "no step for 60 s"]])
    assert status == 1
    assert "| pod killed | 2 | 0 | 0 | 1 | 0.50 s | 0.50 s | 0.50 s |" in lines and "| pod drained | 1 | 0 | 0 | 0 | 0.20 s | 0.20 s | 0.20 s |" in lines
    assert lines[-1].startswith("seed 7: ") and "no step for 60 s" in lines[-1]


def test_each_row_of_the_page_is_of_a_fault_that_is_known():
    sys.path.insert(0, str(FOLDER))
    from table import NAMES
    rows = re.findall(r"^\| ([^|]+?) \| \d+ \| \d+ \| \d+ \| \d+ \| [\d.]+ s ", PAGE, re.M)
    assert len(rows) > 20 and set(rows) <= set(NAMES.values())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
