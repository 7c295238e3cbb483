"""The digits job of the quickstart: real training, a worker killed, a pod drained, a scale-up; judged by its checker."""

import subprocess
import sys

import pytest

import harness
from harness import REPOSITORY, Run

DIGITS = REPOSITORY / "examples/digits"


def test_digits_lose_nothing_through_kill_drain_and_scale(tmp_path):
    audit = tmp_path / "audit"
    audit.mkdir()
    with Run(DIGITS / "job.yaml", RINGMASTER_AUDIT_DIR=str(audit)) as run:
        # Played by the same script as in the quickstart.
        story = subprocess.run([sys.executable, str(REPOSITORY / "hack/lib/story.py"), "--run-dir", str(run.dir), "digits"],
                               env=harness.environment(), capture_output=True, text=True, timeout=300)
        assert story.returncode == 0, story.stdout + story.stderr
        assert run.wait(300) == 0, run.text()
        summary = run.summary()
    assert summary["stepsLost"] == 0
    assert summary["worldSize"] == 6
    judge = subprocess.run(["/usr/bin/python3", str(DIGITS / "check.py"), str(audit)], capture_output=True, text=True,
                           timeout=300)
    assert judge.returncode == 0, judge.stdout + judge.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
