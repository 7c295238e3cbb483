"""`hack/release` makes what users install, and tries it: the command where there is nothing but glibc."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest

from harness import BIN, REPOSITORY, environment

VERSION = re.search(r"project\(ringmaster VERSION ([\d.]+)", (REPOSITORY / "CMakeLists.txt").read_text())[1]

# What is made from nothing compiles the library for an old glibc first, and may wait for another build of it.
WITHIN_S = 900


def run(script, *words):
    return subprocess.run([str(REPOSITORY / "hack" / script), *map(str, words)], capture_output=True, text=True, timeout=WITHIN_S, env=environment(),
                          stdin=subprocess.DEVNULL)


def release(*words):
    return run("release", *words)


def skip_where_it_lacks(done):
    if done.returncode == 3 and os.environ.get("REQUIRE_CLUSTER") != "1":
        pytest.skip("the machine lacks something, so this was NOT tried: " + done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_is_made_and_tried_and_the_bill_names_what_is_inside(tmp_path):
    done = release(VERSION, "--build-dir", BIN.parent, "--out", tmp_path, "--without", "wheels")
    skip_where_it_lacks(done)
    sums = dict(reversed(line.split()) for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {file.name for file in tmp_path.iterdir()} - {"SHA256SUMS"} and len(sums) == 4
    for name, digest in sums.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest

    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as tarball:
        names = tarball.getnames()
    inside = {name.rsplit("/", 1)[1] for name in names if "/lib/ringmaster/private/" in name}
    bill = json.loads(next(tmp_path.glob("*.cdx.json")).read_text())
    files = {each["value"].split()[0] for part in bill["components"] for each in part["properties"] if each["name"] == "ringmaster:file"}
    assert bill["bomFormat"] == "CycloneDX" and files == inside and len(inside) > 20
    licences = {name.rsplit("/", 1)[1] for name in names if "/licences/" in name}
    assert licences == {part["name"] for part in bill["components"]}


def summed(folder):
    return {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}


def test_a_folder_with_files_of_others_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / "values.yaml").write_text("mine")
    for _ in range(2):
        done = release(VERSION, "--only", "chart", "--out", tmp_path)
        assert done.returncode == 2 and "is not empty and has no SHA256SUMS of a release" in done.stderr, done.stderr
        (tmp_path / "SHA256SUMS").write_text("%s  values.yaml\n" % hashlib.sha256(b"mine").hexdigest())  # of others
    assert (tmp_path / "values.yaml").read_text() == "mine" and len(list(tmp_path.iterdir())) == 2


def test_a_release_takes_the_place_of_the_one_before_and_of_nothing_else_in_its_folder(tmp_path):
    made = {"ringmaster-%s.tgz" % VERSION, "ringmaster-%s-manifests.yaml" % VERSION}
    out = tmp_path / "out"
    skip_where_it_lacks(release(VERSION, "--only", "chart", "--out", out))
    assert summed(out) == made
    earlier, mine = "ringmaster-0.0.9-linux-x86_64.tar.gz", "notes.tar"
    for name in (earlier, mine):
        (out / name).touch()
    with (out / "SHA256SUMS").open("a") as sums:
        sums.write("%s  %s\n" % (hashlib.sha256().hexdigest(), earlier))
    skip_where_it_lacks(release(VERSION, "--only", "chart", "--out", out))
    assert summed(out) == made and {file.name for file in out.iterdir()} == made | {"SHA256SUMS", mine}


def test_the_wheel_with_the_programs_is_all_that_a_job_needs_beside_python():
    """It is installed by pip where there is Python and nothing else, and a job loses a worker there and gets it back."""
    skip_where_it_lacks(run("wheel", "--quick", "--build-dir", BIN.parent))
    wheel, = (REPOSITORY / "build/wheel-quick/dist").glob("ringmaster-*.whl")
    newest = re.search(r"manylinux_(\d+_\d+)_", wheel.name)[1].replace("_", ".")
    with zipfile.ZipFile(wheel) as packed:
        programs = "ringmaster/_programs/"
        assert packed.read(programs + "glibc").decode().strip() == newest
        bill = json.loads(packed.read(programs + "bill-of-materials.cdx.json"))
        names = set(packed.namelist())
    files = {each["value"].split()[0] for part in bill["components"] for each in part["properties"] if each["name"] == "ringmaster:file"}
    assert files == {name.rsplit("/", 1)[1] for name in names if name.startswith(programs + "lib/ringmaster/private/")}
    assert {programs + "licences/" + part["name"] for part in bill["components"]} <= names


@pytest.mark.parametrize("words, says", [((), "VERSION is missing"), (("0.0.9",), "VERSION is 0.0.9, and CMakeLists.txt says " + VERSION),
                                         ((VERSION, "--without", "chart"), '--without is "chart", allowed is wheels'),
                                         ((VERSION, "--only", "wheels"), '--only is "wheels", allowed is chart'),
                                         ((VERSION, "--with", "wheels"), '--with is "wheels", allowed is images')])
def test_bad_usage_is_said(words, says):
    done = release(*words)
    assert done.returncode == 2 and says in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
