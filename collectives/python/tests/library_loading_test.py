"""How the library is found and checked, and what a process without it hears."""

import ctypes
import os
import subprocess
import sys

import pytest

import ringmaster
import ringmaster.torch as rm
from conftest import fake_gpu
from ringmaster import _core, _in_flight, _library, errors


@pytest.mark.parametrize("status, kind", [
    (errors.INVALID, ValueError), (errors.MISMATCH, rm.HorovodInternalError),
    (errors.LEFT, rm.Left), (errors.UNAVAILABLE, rm.HorovodInternalError),
    (errors.SHUTDOWN, RuntimeError), (errors.NO_STATE, RuntimeError)])
def test_EachStatusHasItsException(status, kind):
    class Words:
        @staticmethod
        def rm_last_error():
            return b"the reason"

    with pytest.raises(kind, match="the reason"):
        errors.check(status, Words)


def test_AMissingLibraryIsNamedWithAllPlacesThatWereTried(tmp_path):
    places = _library.candidates({}, str(tmp_path / "python" / "ringmaster"))
    assert str(tmp_path / "lib" / _library.FILE) in places
    with pytest.raises(ImportError, match="no such file"):
        _library.load([str(tmp_path / "none.so")])
    assert _library.candidates({"RINGMASTER_LIBRARY": "/x/y.so"}) == ["/x/y.so"]


def test_AnotherLibraryThanOursIsRefused():
    with pytest.raises(ImportError, match="not the Ringmaster library"):
        _library.load(["libm.so.6"])


def test_AnotherAbiVersionIsRefused(monkeypatch):
    monkeypatch.setattr(_library, "ABI_VERSION", 999)
    with pytest.raises(ImportError, match="needs 999"):
        _library.load()


def test_ALibraryThatLacksAFunctionIsSaidToBeOfAnotherVersion(monkeypatch):
    functions = dict(_library._FUNCTIONS, rm_of_a_later_version=(None, []))
    monkeypatch.setattr(_library, "_FUNCTIONS", functions)
    with pytest.raises(ImportError, match="has no function rm_of_a_later_version"):
        _library.load()


def test_TheCorePackageDoesNotImportTorch():
    code = "import sys, ringmaster, ringmaster.elastic; assert 'torch' not in sys.modules"
    environ = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(ringmaster.__file__)))
    assert subprocess.run([sys.executable, "-c", code], env=environ, timeout=60).returncode == 0


class SlowLibrary:
    """rm_wait's slice ends just before the operation completes."""

    def __init__(self, result):
        self.results = [errors.TIMEOUT, result]

    def rm_wait(self, _number, _seconds):
        return self.results.pop(0)

    def rm_poll(self, _number):
        return 1

    def rm_last_error(self):
        return b"the reason"


def test_AnOperationThatCompletesBetweenTwoLooksHasItsOwnResult(monkeypatch):
    monkeypatch.setattr(_core, "library", lambda: SlowLibrary(errors.OK))
    _in_flight.wait(1)
    monkeypatch.setattr(_core, "library", lambda: SlowLibrary(errors.MISMATCH))
    with pytest.raises(rm.HorovodInternalError, match="the reason.*MISMATCH"):
        _in_flight.wait(1)


def _run(code, environ=(), **options):
    environ = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(ringmaster.__file__)),
                   **dict(environ))
    return subprocess.run([sys.executable, "-c", code], env=environ, timeout=120, text=True,
                          capture_output=True, **options)


def test_NoMemoryInTheLibraryIsAnErrorAndNoEndOfTheProcess():
    ended = _run("""
import ctypes, resource
from ringmaster import _core, _library, errors
_core.init()
name, handle = b"n" * (256 << 20), ctypes.c_uint64()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
status = _library.get().rm_barrier_async(name, ctypes.byref(handle))
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert status == errors.OUT_OF_MEMORY, status
assert _library.get().rm_last_error() == b"out of memory"
""")
    assert ended.returncode == 0, ended.stderr


def test_NcclIsWhatThisProcessCanLoad(tmp_path):
    asks = "import ringmaster; print(ringmaster.nccl_built(), ringmaster.cuda_built())"
    assert _run(asks, fake_gpu(tmp_path, RINGMASTER_FAKE_NCCL="22703")).stdout == "22703 True\n"
    assert _run(asks, fake_gpu(tmp_path, RINGMASTER_FAKE_GPUS="0")).stdout == "0 False\n"


def test_NcclThatComesWithAFrameworkAfterInitIsFound(tmp_path):
    environ = fake_gpu(tmp_path, RINGMASTER_COLLECTIVES='{"backend": "Nccl"}')
    # Where no linker looks, as in a framework's wheel.
    framework = os.path.join(environ.pop("LD_LIBRARY_PATH"), "..", "fake_framework")
    ended = _run(f"""
import ctypes, ringmaster
before = ringmaster.nccl_built()
ringmaster.init()
for name in "libcudart.so.12", "libnccl.so.2":  # as an import does
    ctypes.CDLL("{framework}/" + name)
print(before, ringmaster.nccl_built())
""", environ)
    assert ended.stdout == "0 23203\n", ended.stderr


def test_AtTheExitOfTheProcessNothingIsAskedOfLibrariesThatHaveEndedBefore(tmp_path):
    ended = _run("""
import ctypes, ringmaster
from ringmaster import _in_flight, _library, arrays
ringmaster.init()
cuda = ctypes.CDLL("libcudart.so.12")  # loaded after init(), it ends before the library
data = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(data), ctypes.c_size_t(64)) == 0
request = _library.Request(
    _library.ALLREDUCE, b"x", input=data, output=data, shape=(ctypes.c_size_t * 1)(4),
    dimensions=1, dtype=arrays._DTYPES["float32"], op=0, device=1)  # Sum, the first GPU
handle = (ctypes.c_uint64 * 1)()
assert _library.get().rm_submit(ctypes.byref(request), ctypes.c_size_t(1), handle) == 0
assert _library.get().rm_wait(handle[0], ctypes.c_double(30)) == 0
print(ringmaster.nccl_built())
""", fake_gpu(tmp_path))
    assert (ended.returncode, ended.stdout) == (0, "23203\n"), ended.stderr
    events = [line for file in tmp_path.glob("events.*") for line in file.read_text().splitlines()]
    assert events == ["made: init"]


@pytest.mark.parametrize("environ, reason", [
    ({"RINGMASTER_FAKE_GPUS": "0"}, "no GPU can be used: no CUDA-capable device is detected"),
    ({"RINGMASTER_FAKE_NCCL": "22004"}, "libnccl.so.2 is version 22004; 2.20.5 is the oldest")])
def test_AJobForNcclIsRefusedWithTheReasonWhereThereIsNone(tmp_path, environ, reason):
    environ = fake_gpu(tmp_path, RINGMASTER_COLLECTIVES='{"backend": "Nccl"}', **environ)
    ended = _run("import ringmaster; ringmaster.init()", environ)
    assert ended.returncode != 0
    assert "rm_init: the job's collectives.backend is Nccl: " + reason in ended.stderr
