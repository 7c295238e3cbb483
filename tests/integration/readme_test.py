"""What the README shows is what runs: its script, by its one-line job."""

import re
import subprocess
import tempfile

import harness


def test_the_script_of_the_readme_trains(tmp_path):
    text = (harness.REPOSITORY / "README.md").read_text()
    script = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    assert "rm.DistributedOptimizer" in script
    (tmp_path / "train.py").write_text(script)

    done = harness.ringmaster("run", "-np", 2, "/usr/bin/python3", "train.py", cwd=tmp_path, OMP_NUM_THREADS="1")

    assert done.returncode == 0, done.stdout + done.stderr
    assert float(re.search(r"accuracy (\d\.\d+)", done.stdout).group(1)) > 0.9, done.stdout


def test_the_manifest_of_the_readme_is_accepted(tmp_path):
    text = (harness.REPOSITORY / "README.md").read_text()
    manifest = re.search(r"```yaml\n(.*?)```", text, re.S).group(1)
    (tmp_path / "job.yaml").write_text(manifest.replace("[python3, train.py]", "[/bin/false]"))
    with tempfile.TemporaryDirectory(prefix="rm-") as directory:  # short, for its sockets; a failed run leaves its logs there
        done = harness.ringmaster("run", "--run-dir", directory, "job.yaml", cwd=tmp_path)
    assert done.returncode == 1 and "exited with 1" in done.stdout + done.stderr, done.stdout + done.stderr


def test_the_programs_are_found_on_the_path_that_the_readme_sets(tmp_path):
    text = (harness.REPOSITORY / "README.md").read_text()
    line = re.search(r"^\$ (export PATH=\S+)$", text, re.M).group(1)
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(harness.BIN.parent)
    done = subprocess.run(["bash", "-c", line + "\ncommand -v ringmaster\nringmaster version"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, timeout=harness.PATIENCE)
    found, version = done.stdout.splitlines()
    assert found == str(tmp_path / "build/release/bin/ringmaster") and re.fullmatch(r"ringmaster [\d.]+", version), done
