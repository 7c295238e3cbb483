"""deploy/: the Dockerfiles install what the binaries name, and deploy/build-images says what is wrong."""

import io
import json
import os
import re
import stat
import tarfile

import pytest

from conftest import ROOT, run

SCRIPT = ROOT / "deploy" / "build-images"
BIN = os.environ.get("RINGMASTER_BIN", "")
# In the base image, or brought by another package of the list.
BASE = {"libc6", "libgcc-s1", "libstdc++6"}


def dockerfile(name):
    return (ROOT / "deploy" / name / "Dockerfile").read_text()


def packages(name):
    text = re.search(r"--no-install-recommends((?:\s*\\\n\s+[\w.+-]+)+)", dockerfile(name))[1]
    return set(re.findall(r"[\w.+-]+", text))


def dynamic_section(binary):
    done = run("readelf", "-d", binary)
    assert done.returncode == 0, done.stderr
    return done.stdout


def needed_packages(binary):
    """Debian packages of the shared libraries that the binary itself names."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic_section(binary))
    assert names, binary
    places = dict(re.findall(r"^\s*(\S+) => (\S+)", run("ldd", binary).stdout, re.M))
    found = set()
    for name in names:
        if name not in places:  # the loader
            continue
        for path in (os.path.realpath(places[name]), places[name], places[name].replace("/lib/", "/usr/lib/", 1)):
            owner = run("dpkg-query", "--search", path)
            if owner.returncode == 0:
                found.add(owner.stdout.split(":")[0])
                break
        else:
            pytest.fail("no package owns %s, which %s needs" % (places[name], binary))
    return found - BASE


@pytest.mark.skipif(not BIN, reason="RINGMASTER_BIN is not set: no binaries to look at")
@pytest.mark.parametrize("image", ["operator", "sidecar"])
def test_an_image_installs_the_libraries_that_its_binary_names(image):
    missing = needed_packages(os.path.join(BIN, "ringmaster-" + image)) - packages(image)
    assert not missing, "add these to deploy/%s/Dockerfile" % image


@pytest.mark.skipif(not BIN, reason="RINGMASTER_BIN is not set: no binaries to look at")
def test_the_launcher_is_static_because_it_runs_in_images_of_others():
    assert "NEEDED" not in dynamic_section(os.path.join(BIN, "ringmaster-launcher"))


@pytest.mark.parametrize("image", ["operator", "sidecar", "trainer"])
def test_an_image_has_no_root_and_no_development_packages(image):
    text = dockerfile(image)
    assert re.search(r"^USER 65532:65532$", text, re.M)
    assert re.search(r"^ARG BASE=docker.io/library/debian:bookworm-slim\nFROM \$\{BASE\}( AS files)?$", text, re.M)
    assert not [p for p in packages(image) if p.endswith("-dev")]


def test_the_trainer_has_one_layer_of_packages():
    text = dockerfile("trainer")
    assert text.count("apt-get") == 2 and text.count("\nRUN apt-get") == 1 and "rm -rf /var/lib/apt/lists/*" in text


@pytest.mark.skipif(not BIN, reason="RINGMASTER_BIN is not set: no binaries to collect")
@pytest.mark.parametrize("image", ["operator", "sidecar"])
def test_an_image_without_a_shell_has_all_that_its_program_needs(tmp_path, image):
    """deploy/collect-files on this machine, as the Dockerfiles call it. The program then starts where there is nothing else."""
    root, program = tmp_path / "root", os.path.join(BIN, "ringmaster-" + image)
    done = run(ROOT / "deploy" / "collect-files", root, program)
    assert done.returncode == 0, done.stderr
    assert not [file for file in root.rglob("*") if file.name in ("sh", "bash", "dash", "busybox")]
    bill = run(ROOT / "hack/lib/bill-of-materials", "--version", "1", "--root", root)
    assert bill.returncode == 0, bill.stderr
    names = {part["name"] for part in json.loads(bill.stdout)["components"]}
    assert {"libc6", "libssl3"} <= names and packages(image) - {"ca-certificates"} <= names
    assert all((root / "usr/share/doc" / name / "copyright").is_file() for name in ("libc6", "libssl3"))
    if os.geteuid() == 0:
        started = run("chroot", root, program, "--help")
        assert "ringmaster-" + image in started.stdout + started.stderr, started.stderr


def test_a_program_whose_library_is_missing_makes_no_image(tmp_path):
    lacking = tmp_path / "lacking"
    lacking.write_text("#!/bin/sh\necho '\tlibnone.so.1 => not found'\n")
    lacking.chmod(0o755)
    (tmp_path / "ldd").write_text(lacking.read_text())
    (tmp_path / "ldd").chmod(0o755)
    done = run("env", "PATH=%s:%s" % (tmp_path, os.environ["PATH"]), ROOT / "deploy" / "collect-files", tmp_path / "root", lacking)
    assert done.returncode == 1 and "libnone.so.1" in done.stderr


def test_the_trainer_holds_nothing_of_ours():
    assert not re.search(r"^COPY .*(ringmaster|bin|lib)", dockerfile("trainer"), re.M)


def builder(tmp_path, script):
    path = tmp_path / "builder"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize("arguments,status,words", [
    (["--help"], 0, "--build-dir DIR"),
    (["--nonsense"], 2, "unknown option --nonsense"),
    (["worker"], 2, "unknown image worker: it must be operator, sidecar or trainer"),
    (["--library", "old"], 2, "--library is 'old', allowed are portable and native"),
    (["--tag"], 2, "--tag needs a value"),
    (["--tag", "a b"], 2, "--tag is 'a b', must be"),
    (["--with", "no-such-builder", "operator"], 3, "no command no-such-builder"),
    (["--build-dir", "no/such", "--with", "true", "operator"], 3,
     "no/such/bin/ringmaster-operator is not built"),
], ids=lambda v: " ".join(v) if isinstance(v, list) else None)
def test_build_images_says_what_is_wrong(arguments, status, words):
    done = run(SCRIPT, *arguments)
    assert done.returncode == status, done.stderr
    assert words in done.stdout + done.stderr


def test_build_images_builds_tags_saves_and_pushes(tmp_path):
    tool = builder(tmp_path, 'echo "$@" >>%s/calls\n' % tmp_path)
    done = run(SCRIPT, "--with", tool, "--prefix", "r.example/x/", "--tag", "7", "--base", "debian:x",
               "--push", "trainer")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "calls").read_text().splitlines() == [
        "build --build-arg BASE=debian:x -t r.example/x/examples-digits:7 "
        "-f deploy/trainer/Dockerfile examples/digits",
        "push r.example/x/examples-digits:7"]


def test_a_build_that_fails_is_said_to_have_failed(tmp_path):
    done = run(SCRIPT, "--with", builder(tmp_path, "exit 5\n"), "trainer")
    assert done.returncode == 1 and "trainer failed" in done.stderr


@pytest.mark.skipif(not BIN, reason="RINGMASTER_BIN is not set: no binaries to install")
@pytest.mark.parametrize("image", ["operator", "sidecar"])
def test_the_context_of_an_image_has_every_file_that_is_copied(tmp_path, image):
    """The builder is a script that looks for each COPY source in the context it is given."""
    sources = [word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile(image), re.M)
               for word in line.split()]
    look = 'for last; do :; done\ncd "$last" && for f in %s; do test -e $f -a ! -L $f || ' \
           '{ echo "no $f" >&2; exit 9; }; done\n' % " ".join(sources)
    done = run(SCRIPT, "--with", builder(tmp_path, look), "--build-dir", os.path.dirname(BIN), "--library", "native", image)
    assert sources and done.returncode == 0, done.stderr


def test_files_that_only_their_owner_may_read_go_into_an_image_for_everybody(tmp_path):
    """The container runs as another user. What is installed is made up here, as by a build in a checkout under umask 077."""
    for program in ("operator", "sidecar", "launcher", "bench"):
        file = tmp_path / "build/bin" / ("ringmaster-" + program)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(0o700)
    install = tmp_path / "tools/cmake"
    install.parent.mkdir()
    install.write_text('#!/bin/sh\nwhile [ "$1" != --prefix ]; do shift; done\n'
                       'umask 077 && mkdir -p "$2/bin" "$2/lib" && cp %s/build/bin/* "$2/bin/" && echo >"$2/lib/libringmaster.so.1" &&\n'
                       'ln -sf libringmaster.so.1 "$2/lib/libringmaster.so"\n' % tmp_path)
    install.chmod(0o755)
    look = 'for last; do :; done\n[ -x "$last/bin/ringmaster-operator" ] || exit 9\n' \
           'find "$last" ! -perm -o=r -o -perm -u=x ! -perm -o=x | grep . && exit 9; exit 0\n'
    done = run("sh", "-c", 'umask 077 && PATH=%s:$PATH exec "$@"' % install.parent, "sh", SCRIPT, "--with", builder(tmp_path, look),
               "--build-dir", tmp_path / "build", "operator")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_trainer_may_be_made_of_a_checkout_that_only_its_owner_may_read():
    text = dockerfile("trainer")
    assert text.index("\nCOPY ") < text.index("\nRUN chmod -R a+rX .\n") < text.index("\nUSER ")


@pytest.mark.skipif(not BIN, reason="RINGMASTER_BIN is not set: no library to look at")
@pytest.mark.parametrize("file, words", [("lib/libringmaster.so", r"asks for glibc 2\.3\d, allowed is 2\.28 and older"),
                                         ("bin/ringmaster-launcher", "asks for no version of glibc"), ("lib/no-such", "there is no")])
def test_a_library_that_needs_more_than_images_of_workers_have_is_refused(file, words):
    """The build's own is such a one. What went into an image is looked at by tests/e2e/images_test.py."""
    done = run(ROOT / "hack/lib/portable-library", "--check", os.path.join(os.path.dirname(BIN), file))
    assert done.returncode == 1 and re.search(words, done.stderr), done.stderr


@pytest.mark.skipif(not BIN, reason="RINGMASTER_BIN is not set: no operator to ask")
def test_every_flag_of_the_chart_is_one_that_the_operator_has():
    known = set(re.findall(r"--[a-z][a-z-]+", run(os.path.join(BIN, "ringmaster-operator"), "--help").stdout))
    template = (ROOT / "charts" / "ringmaster" / "templates")
    used = set()
    for name in ("_args.tpl", "cleanup.yaml"):
        used |= set(re.findall(r"-[ {]+(?:printf )?\"?(--[a-z][a-z-]+)", (template / name).read_text()))
    assert len(used) > 15 and not used - known


def test_an_image_is_unpacked_layer_by_layer_and_its_bill_names_what_is_installed_in_it(tmp_path):
    """hack/release lists the packages of an image by the image's own database; a layer may remove what the ones below have brought."""
    status = "Package: %s\nStatus: %s\nArchitecture: amd64\nVersion: 1.2+3\n\n"
    database = (status % ("libkept", "install ok installed") + status % ("libremoved", "deinstall ok config-files")).encode()
    first = {"etc/old": b"", "etc/emptied/a": b"", "etc/kept": b"1", "var/lib/dpkg/status": b""}
    second = {"etc/.wh.old": b"", "etc/emptied/.wh..wh..opq": b"", "etc/emptied/b": b"", "var/lib/dpkg/status": database}
    archive = {"manifest.json": json.dumps([{"Layers": ["one.tar", "two.tar"]}]).encode(), "one.tar": tarred(first), "two.tar": tarred(second)}
    (tmp_path / "image.tar").write_bytes(tarred(archive))

    root = tmp_path / "root"
    done = run(ROOT / "hack/lib/unpack-image", tmp_path / "image.tar", root)
    assert done.returncode == 0, done.stderr
    assert sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()) == ["etc/emptied/b", "etc/kept", "var/lib/dpkg/status"]

    done = run(ROOT / "hack/lib/bill-of-materials", "--version", "1", "--root", root)
    assert done.returncode == 0, done.stderr
    installed = [part["purl"] for part in json.loads(done.stdout)["components"] if part["properties"][0]["value"] == "installed"]
    assert installed == ["pkg:deb/debian/libkept@1.2%2B3?arch=amd64"]


def tarred(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return packed.getvalue()
