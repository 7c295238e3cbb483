"""What the image of the sidecar brings into worker pods runs in images of others: an older glibc, no libstdc++. Images that need no shell have none."""
import json
import subprocess
import tarfile

from harness import REPOSITORY, image_archives

# Loaded there, and the first program there, which is static.
LOADED = ("usr/local/lib/libringmaster.so", "usr/local/bin/ringmaster-bench")
STATIC = "usr/local/bin/ringmaster-launcher"


def unpack(archive, names, folder):
    """{name: where it lies now}; of several layers that have a file the last one counts."""
    found = {}
    with tarfile.open(archive) as image:
        manifest, = json.load(image.extractfile("manifest.json"))
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=image.extractfile(layer)) as packed:
                for entry in packed:
                    if entry.name in names:
                        found[entry.name] = folder / entry.name.rsplit("/", 1)[1]
                        found[entry.name].write_bytes(packed.extractfile(entry).read())
    return found


def test_what_worker_pods_get_needs_glibc_2_28_and_nothing_else(tmp_path):
    sidecar = next(archive for archive in image_archives() if archive.name == "sidecar.tar")
    found = unpack(sidecar, {*LOADED, STATIC}, tmp_path)
    done = subprocess.run([REPOSITORY / "hack/lib/portable-library", "--check", *(found[name] for name in LOADED)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "(NEEDED)" not in subprocess.run(["readelf", "-d", found[STATIC]], capture_output=True, text=True, check=True).stdout


def test_operator_and_sidecar_come_without_a_shell():
    shells = {"sh", "bash", "dash", "busybox", "perl", "python3", "apt-get"}
    looked_at = [archive for archive in image_archives() if archive.name in ("operator.tar", "sidecar.tar")]
    assert len(looked_at) == 2
    for archive in looked_at:
        with tarfile.open(archive) as image:
            manifest, = json.load(image.extractfile("manifest.json"))
            for layer in manifest["Layers"]:
                with tarfile.open(fileobj=image.extractfile(layer)) as packed:
                    assert not [name for name in packed.getnames() if name.rsplit("/", 1)[-1] in shells], archive
