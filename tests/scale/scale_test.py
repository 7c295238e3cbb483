"""The benchmark of scale, small: that it runs, that its bare client makes what the operator makes, and that a job costs no more calls than it
may. No time is looked at."""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))

from handle import cannot, require_programs  # noqa: E402

# docs/performance.md has 27, of a job of ten pods. The others are those that an operator makes whatever jobs there are: lists, leases.
MOST_CALLS_PER_JOB = 50
MOST_OTHER_CALLS = 500
OPERATOR = os.environ.get("RINGMASTER_SCALE_OPERATOR", str(HERE.parents[1] / "build/release/bin/ringmaster-operator"))


def test_a_few_jobs_run_and_are_measured(tmp_path):
    require_programs("kubernetes", "coredns", "kwok")
    if not os.path.exists(OPERATOR):
        cannot(OPERATOR + " is missing: build the target ringmaster-operator")
    figures = tmp_path / "figures.json"
    done = subprocess.run([sys.executable, str(HERE / "scale.py"), "--operator", OPERATOR, "--fake-nodes", "4", "--jobs", "4",
                           "--pods", "3", "--foreign", "5", "--json", str(figures), "--log", str(tmp_path / "operator.log"),
                           "--patience", "240"], capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text())
    assert found["jobs"] == 4 and found["foreign_pods"] == 5
    for name in ("operator_jobs_per_s", "bare_jobs_per_s", "cpu_ms_per_job", "rss_end_mib", "looks", "api_calls", "drain_s"):
        assert found[name] > 0, name
    assert found["api_calls"] <= MOST_CALLS_PER_JOB * found["jobs"] + MOST_OTHER_CALLS
    assert found["events_dropped"] == 0
