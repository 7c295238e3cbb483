"""What launching decides before anything is started: options, hosts, what can be sent, what comes
back in lines of output.
"""

import inspect
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
import types

import optional
import pytest

from ringmaster import _library, errors
from ringmaster.runner import (HorovodRunner, cluster, config_file, function, horovodrun, hosts,
                               local, messages, modules, options, plan, program, results, worker)
from ringmaster.runner.errors import FunctionError, LaunchError, ProgramMissing, RankError


def planned(*words):
    return plan.make(options.parse(list(words), "1"))


def words_of(*words):
    made = planned(*words)
    return " ".join(made.command("R", ["c"])[1:])


@pytest.mark.parametrize("words, command", [
    ("-np 4", "run -np 4 -- c"),
    ("--num-proc=4", "run -np 4 -- c"),
    ("-np 2 --min-np 1 --max-np 4", "run -np 2 --min-np 1 --max-np 4 -- c"),
    ("-np 2 --min-np 1", "run -np 2 --min-np 1 --max-np 2 -- c"),
    ("-np 2 --max-np 4", "run -np 2 --min-np 2 --max-np 4 -- c"),
    ("-np 2 --max-np 9 -H localhost:3", "run -np 2 --min-np 2 --max-np 3 -- c"),
    ("-np 2 -H localhost,127.0.0.1:3", "run -np 2 -- c"),
    ("-np 2 --reset-limit 0", "run -np 2 --backoff-limit 0 -- c"),
    ("-np 2 --start-timeout 9", "run -np 2 --init-timeout 9 -- c"),
    ("-np 2 --fusion-threshold-mb 0", "run -np 2 --fusion-threshold 0 -- c"),
    ("-np 2 --output-filename out", "run -np 2 --output-filename out -- c"),
])
def test_OptionsAreThoseOfRingmasterRun(words, command):
    assert words_of(*words.split()) == command


@pytest.mark.parametrize("words, environ", [
    ("--timeline-filename DYNAMIC", {"HOROVOD_TIMELINE": "DYNAMIC"}),
    ("--timeline-filename t.json", {"HOROVOD_TIMELINE": os.path.abspath("t.json")}),
    ("--no-stall-check", {"HOROVOD_STALL_CHECK_DISABLE": "1"}),
    ("--stall-check-warning-time-seconds 7", {"HOROVOD_STALL_CHECK_TIME_SECONDS": "7"}),
    ("--stall-check-shutdown-time-seconds 8", {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "8"}),
    ("--tcp", {"RINGMASTER_SHM": "0"}),
    ("", {}),
])
def test_WhatTheLibraryReadsIsInTheEnvironment(words, environ):
    assert planned("-np", "2", *words.split()).environ == environ


@pytest.mark.parametrize("words, says", [
    ("", "-np N is missing"),
    ("-np 0", "is 0, must be at least 1"),
    ("-np two", "'two'"),
    ("-np 2 --min-np 3", "--min-np 3 is more than -np 2"),
    ("-np 4 --max-np 3", "--max-np 3 is less than -np 4"),
    ("-np 4 -H localhost:3", "the hosts have 3 slots"),
    ("-np 4 -H localhost:4 --hostfile h", "not allowed with argument"),
    ("-np 4 -H localhost:two", "'localhost:two' is no host; allowed is HOST:SLOTS"),
    ("-np 2 --hostfile /nowhere", "--hostfile /nowhere: can't be read"),
    ("-np 2 --slots-per-host 2", "goes with --host-discovery-script"),
    ("-np 2 --mpi-args=-x", "there is no mpirun"),
    ("-np 2 --jsrun", "jsrun is not used"),
    ("-np 2 --fusion-treshold-mb 3 c", "did you mean --fusion-threshold-mb?"),
    ("-np 2 --fusion-threshold-mb 1025", "is 1025 MB, allowed are 0 to 1024"),
])
def test_WrongWordsAreNamed(words, says):
    with pytest.raises(LaunchError) as raised:
        planned(*words.split())
    assert says in str(raised.value)


@pytest.mark.parametrize("words, command", [
    ("-np 2 -H host.invalid,localhost:3", "run -np 2 --hosts host.invalid:1,localhost:3 -- c"),
    ("-np 2 --max-np 9 -H host.invalid:3",
     "run -np 2 --min-np 2 --max-np 3 --hosts host.invalid:3 -- c"),
    ("-np 2 -H host.invalid:2 -p 7 -i key",
     "run -np 2 --hosts host.invalid:2 --ssh-port 7 --ssh-identity-file key -- c"),
    ("-np 2 --host-discovery-script ./s -p 7",
     "run -np 2 --min-np 2 --max-np 1024 --host-discovery-script ./s --ssh-port 7 -- c"),
    ("-np 2 --max-np 4 --host-discovery-script ./s --slots-per-host 3",
     "run -np 2 --min-np 2 --max-np 4 --host-discovery-script ./s --slots-per-host 3 -- c"),
])
def test_OtherMachinesAreRingmasterRunsToReach(words, command):
    found = options.parse(words.split(), "1")
    made = plan.make(found)
    assert " ".join(made.command("R", ["c"])[1:]) == command
    assert found.notes == []


def test_OptionsOfSshHaveNoMeaningOnThisMachine():
    found = options.parse("-np 2 -H localhost:2 -p 7 -i key".split(), "1")
    assert "--ssh-port" not in plan.make(found).words
    assert [note.split()[0] for note in found.notes] == ["-p", "-i"]


def launched_by(monkeypatch, *args, **kwargs):
    """(the words of `ringmaster run`, what was said) of a run() with these arguments."""
    said, launched = [], []

    def launch(func, args, kwargs, planned, *_):
        launched.append(" ".join(planned.command("R", ["c"])[1:]))
        return dict.fromkeys(range(planned.np), 0)

    monkeypatch.setattr(local, "launch", launch)
    monkeypatch.setattr(local, "print_line", said.append)
    local.run(adds, *args, **kwargs)
    return launched[0], said


def test_TheArgumentsOfRunStandWhereHorovodHasThem():
    names = list(inspect.signature(local.run).parameters)
    assert names[:names.index("env")] == [
        "func", "args", "kwargs", "num_proc", "min_num_proc", "max_num_proc", "slots",
        "reset_limit", "cooldown_range", "hosts", "hostfile", "host_discovery_script",
        "start_timeout", "ssh_port", "ssh_identity_file", "disable_cache", "output_filename",
        "verbose", "use_gloo", "use_mpi", "mpi_args", "network_interface", "network_interfaces",
        "executable", "np", "min_np", "max_np"]


def test_ADiscoveryScriptOfRunIsAskedByRingmaster(monkeypatch):
    command, said = launched_by(monkeypatch, num_proc=2, max_num_proc=4, slots=3, verbose=True,
                                host_discovery_script="./s", network_interfaces=["eth0"])
    assert command == ("run -np 2 --min-np 2 --max-np 4 --host-discovery-script ./s "
                       "--slots-per-host 3 -- c")
    assert said == ["run: without meaning here: network_interfaces"]
    command, said = launched_by(monkeypatch, np=2, slots=3, verbose=True)
    assert command == "run -np 2 -- c" and said == ["run: without meaning here: slots"]
    with pytest.raises(LaunchError, match="not allowed with argument"):
        launched_by(monkeypatch, np=2, hosts="localhost:2", host_discovery_script="./s")


def test_ARunWithADiscoveryScriptReturnsAValueForEachRankOfTheEnd(monkeypatch):
    monkeypatch.setattr(local, "launch", lambda *_: {0: "a"})
    assert local.run(adds, np=2, host_discovery_script="./s") == ["a"]


def test_OptionsWithoutMeaningAreTakenAndSaidOnce():
    for names, kind, why in options.WITHOUT_MEANING:
        value = [] if kind is None else ["1", "2"] if kind == "range" else [
            kind[0] if isinstance(kind, tuple) else "1"]
        for name in names:
            found = options.parse(["-np", "2", name, *value, "c", name], "1")
            assert found.command == ["c", name]
            assert len(found.notes) == (1 if why else 0), name
            assert all(note.startswith(name + " has no meaning here: ") for note in found.notes)


def test_CheckBuildSaysThatTheLibraryIsMissing(monkeypatch, capsys):
    def missing():
        raise ImportError("libringmaster.so: no such file")

    monkeypatch.setattr(_library, "get", missing)
    assert horovodrun.main(["--check-build"], "1.2") == 0
    said = capsys.readouterr()
    assert "1.2:" in said.out and "[ ] NCCL" in said.out and "[X] Gloo" in said.out
    assert said.err == "horovodrun: libringmaster.so: no such file\n"


def test_ThisMachineIsKnownByTheAddressesOfItsInterfaces():
    for name in ("localhost", "127.0.0.1", "127.0.1.1"):
        assert hosts.is_here(name), name
    for name in ("224.0.0.1", "0.0.0.0"):  # a socket can have them, but no interface has them
        assert not hosts.is_here(name), name


def test_AHostfileHasALineForEachHost(tmp_path):
    file = tmp_path / "hosts"
    file.write_text("# mine\nlocalhost slots=2\n\n%s  slots = 3 # by name\n127.0.0.1\n" %
                    socket.gethostname())
    assert hosts.slots_of(hosts.from_file(str(file))) == 6
    file.write_text("localhost slots=2\nlocalhost 3\n")
    with pytest.raises(LaunchError, match="line 2: 'localhost 3' is no host"):
        hosts.from_file(str(file))
    file.write_text("\n")
    with pytest.raises(LaunchError, match="names no host"):
        hosts.from_file(str(file))


@pytest.mark.parametrize("text, says", [
    ("fusion: 3", "there is no fusion; allowed are controller, params, autotune"),
    ("params: {fusion: 3}", "there is no params.fusion; allowed are fusion_threshold_mb"),
    ("params: 3", "params: is 3, must be a section"),
    ("params: {fusion_threshold_mb: [3]}", "params.fusion_threshold_mb: is [3], must be one value"),
    ("controller: ssh", "controller: is 'ssh', allowed are gloo and mpi"),
    ("- a", "must be sections of keys and values"),
    ("a: [", "can't be read"),
])
def test_AWrongConfigFileIsNamed(tmp_path, text, says):
    optional.module("yaml")
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(LaunchError) as raised:
        config_file.words(str(file))
    assert says in str(raised.value) and str(file) in str(raised.value)


def test_EveryKeyOfAConfigFileIsAnOption(tmp_path):
    optional.module("yaml")
    file = tmp_path / "c.yaml"
    for section, keys in config_file._SECTIONS.items():
        for key, option in keys.items():
            for value in ("true", "false") if option in SWITCHES else ("INFO",) \
                    if key == "level" else ("1",):
                file.write_text("%s: {%s: %s}" % (section, key, value))
                options.parse(["-np", "1", *config_file.words(str(file)), "c"], "1")


SWITCHES = {"--hierarchical-allreduce", "--hierarchical-allgather", "--torus-allreduce", "--autotune",
            "--timeline-mark-cycles", "--stall-check", "--mpi-threads-disable",
            "--log-with-timestamp"}


def make_program(text, *path):
    file = path[0].joinpath(*path[1:])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def test_TheProgramIsLookedForInFourPlaces(tmp_path):
    package = str(tmp_path / "lib/ringmaster/python/ringmaster")
    on_path = make_program("", tmp_path, "path", "ringmaster")
    environ = {"PATH": os.path.dirname(on_path)}
    assert program.find(environ, package) == on_path
    beside = make_program("", tmp_path, "bin", "ringmaster")
    assert program.find(environ, package) == beside
    assert program.find(environ, str(tmp_path / "python/ringmaster")) == beside
    brought = make_program("", pathlib.Path(package), "_programs", "bin", "ringmaster")
    assert program.find(environ, package) == brought
    named = make_program("", tmp_path, "mine", "ringmaster")
    for value in (named, os.path.dirname(named)):
        assert program.find(dict(environ, RINGMASTER_BIN=value), package) == named
    with pytest.raises(ProgramMissing, match="is no program"):
        program.find(dict(environ, RINGMASTER_BIN="/nowhere"), package)


def test_TheScriptThatPipMakesIsNotTakenForTheProgram(tmp_path):
    """It would start itself again, for ever."""
    package = str(tmp_path / "lib/python3/site-packages/ringmaster")
    text = "#!/usr/bin/python3\nfrom ringmaster.runner.command import main\n"
    script = make_program(text, tmp_path, "bin", "ringmaster")
    environ = {"PATH": os.path.dirname(script) + ":" + str(tmp_path / "path")}
    with pytest.raises(ProgramMissing, match="was not found"):
        program.find(environ, package)
    with pytest.raises(ProgramMissing, match="is the script that pip has made"):
        program.find(dict(environ, RINGMASTER_BIN=script), package)
    behind_it = make_program("", tmp_path, "path", "ringmaster")
    assert program.find(environ, package) == behind_it
    wrapper = make_program("#!/bin/sh\nexec strace ringmaster", tmp_path, "mine", "wrapper")
    assert program.find(dict(environ, RINGMASTER_BIN=wrapper), package) == wrapper


@pytest.mark.parametrize("has, brought, says", [
    ("2.9", False, "needs glibc 2.36 or later, and this machine has glibc 2.9."),
    ("2.35", True, "needs glibc 2.36 or later, and this machine has glibc 2.35."),
    ("", False, "this machine has another C library."),
    ("2.36", False, "this machine's glibc (2.36) is new enough for the wheel that brings it"),
    ("2.100", False, "this machine's glibc (2.100) is new enough"),
    ("2.36", True, None),
])
def test_AWheelWhoseProgramsCanNotRunHereSaysWhichGlibcTheyNeed(tmp_path, has, brought, says):
    (tmp_path / "ringmaster/_programs").mkdir(parents=True)
    (tmp_path / "ringmaster/_programs/glibc").write_text("2.36\n")
    if brought:
        make_program("", tmp_path, "ringmaster/_programs/bin/ringmaster")
    environ, package = {"PATH": "/nowhere"}, str(tmp_path / "ringmaster")
    if says is None:
        assert program.find(environ, package, has).startswith(package)
        return
    with pytest.raises(ProgramMissing) as raised:
        program.find(environ, package, has)
    assert says in str(raised.value) and "RINGMASTER_BIN" in str(raised.value)


def test_TheCommandOfPipBecomesTheProgramAndKeepsItsName(tmp_path):
    (tmp_path / "ringmaster").write_text('#!/bin/sh\necho "$@"; exit 7\n')
    (tmp_path / "ringmaster").chmod(0o755)
    code = "import sys; sys.argv[0] = '/x/kubectl-ringmaster'; " \
           "from ringmaster.runner.command import main; sys.exit(main())"
    called = [sys.executable, "-c", code, "get", "a b"]
    done = subprocess.run(called, env=dict(os.environ, RINGMASTER_BIN=str(tmp_path)),
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (7, "get a b\n")
    done = subprocess.run(called, env=dict(os.environ, RINGMASTER_BIN="/nowhere"),
                          capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.startswith("ringmaster: RINGMASTER_BIN is /nowhere")
    # A program sees by which name it was called; a script can't.
    done = subprocess.run(called[:3] + ["-c", "import sys; print(sys.orig_argv[0])"],
                          env=dict(os.environ, RINGMASTER_BIN=sys.executable),
                          capture_output=True, text=True)
    assert done.stdout == "kubectl-ringmaster\n", done.stderr


def adds(a, b=1):
    return a + b


def test_AFunctionTravelsWithItsArgumentsAndItsPath(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    called, args, kwargs = function.unpack(function.pack(adds, (2,), {"b": 3}, ["/its/own"]))
    assert called(*args, **kwargs) == 5 and sys.path[0] == "/its/own"


@pytest.mark.parametrize("make, says", [
    (lambda lock: (adds, (1, lock), {}), "argument 1 of adds can't be sent to the workers: it is a "),
    (lambda lock: (adds, (1,), {"b": lock}), "argument b of adds can't be sent"),
    (lambda lock: (adds(1, 2), (), {}), "3 is no function"),
])
def test_WhatCantBeSentIsNamed(make, says):
    with pytest.raises(FunctionError) as raised:
        function.pack(*make(threading.Lock()))
    assert says in str(raised.value)


def test_ANameThatAFunctionUsesAndThatCantBeSentIsNamed():
    optional.module("cloudpickle")
    lock = threading.Lock()

    def locks():
        with lock:
            return 1

    with pytest.raises(FunctionError, match="locks can't be sent to the workers: it uses lock, "
                       "which is a lock"):
        function.pack(locks)


def test_WithoutCloudpickleALambdaSaysTheWayOut(monkeypatch):
    monkeypatch.setattr(function, "BY_VALUE", False)
    monkeypatch.setattr(function, "_pickler", pickle)
    with pytest.raises(FunctionError, match="is a lambda, or stands inside another function. "
                       "`pip install cloudpickle`"):
        function.pack(lambda: 1)
    assert function.unpack(function.pack(adds, (1,)))[0] is adds


def test_AnotherVersionOfPythonIsRefused():
    packed = pickle.loads(function.pack(adds))
    packed.update(by_value=True, python=(3, 1))
    with pytest.raises(FunctionError, match=r"was sent by Python 3\.1, and the worker has 3\."):
        function.unpack(pickle.dumps(packed))


def test_WhatWorkersSayComesThroughOtherOutput(capfd, monkeypatch):
    monkeypatch.setenv(messages.TOKEN, "t0")
    data = os.urandom(20000)
    messages.log_to_driver("two\nlines")
    messages.send("value", 3, data)
    messages.log_to_driver("x" * 5000)
    sent = capfd.readouterr().out.splitlines()
    shown, logs = [], []
    receiver = messages.Receiver("t0", shown.append, logs.append)
    for line in sent:
        assert len(line) < 16000
        receiver.take("[3] " + line)
        receiver.take("[1] other output")
    receiver.take("[3] half a line " + sent[0])
    receiver.take(sent[0].replace("t0", "t1"))  # of another launch: a line as any
    receiver.take(sent[1][:200])  # cut off
    assert receiver.newest("value", 3) == data and receiver.newest("value", 2) is None
    assert logs[0] == "two\nlines" and logs[2] == "two\nlines"
    assert logs[1] == "x" * 4000 + "... (1000 characters more)"
    assert shown == ["[1] other output"] * len(sent) + ["[3] half a line ",
                                                        sent[0].replace("t0", "t1")]


def test_AValueThatDoesNotComeWholeIsAnErrorAndNotLeftOut(capfd, monkeypatch):
    monkeypatch.setenv(messages.TOKEN, "t0")
    for rank in range(3):
        messages.send("value", rank, pickle.dumps("v" * 20000))
    sent = capfd.readouterr().out.splitlines()
    receiver = messages.Receiver("t0", print, print)
    for number, line in enumerate(sent):
        if number != 1:  # a chunk of rank 0
            receiver.take(line)
    assert receiver.lacking() == [0]
    with pytest.raises(LaunchError, match="values of ranks 0 have not come whole"):
        results.of_messages(receiver)
    receiver.take(sent[1])
    assert sorted(results.of_messages(receiver)) == [0, 1, 2]


def test_WithoutALauncherALogIsPrinted(capsys, monkeypatch):
    monkeypatch.delenv(messages.TOKEN, raising=False)
    messages.log_to_driver("loss 1")
    assert capsys.readouterr().out == "loss 1\n"


def test_AnExceptionThatCantBeReadHereIsARankError():
    class Unknown:
        def __reduce__(self):
            return unknown_class_of_a_worker, ()

    for error in (None, pickle.dumps(Unknown()).replace(b"unknown_class", b"another_class")):
        with pytest.raises(RankError, match="rank 2 raised:\nTraceback") as raised:
            results.raise_failure(2, pickle.dumps((error, "Traceback\n")))
        assert raised.value.rank == 2 and pickle.loads(pickle.dumps(raised.value)).rank == 2


def test_OfSeveralFailuresTheFirstIsRaised(tmp_path):
    for rank, when in ((0, 20), (1, 10), (2, 30)):
        error = pickle.dumps(KeyError(rank))
        (tmp_path / ("failure.%d" % rank)).write_bytes(pickle.dumps((error, "Traceback")))
        os.utime(tmp_path / ("failure.%d" % rank), (when, when))
    with pytest.raises(KeyError) as raised:
        results.of_folder(str(tmp_path))
    assert raised.value.args == (1,) and raised.value.__cause__.rank == 1


def test_ValuesAreReadByRank(tmp_path):
    for rank in (10, 2, 0):
        (tmp_path / ("value.%d" % rank)).write_bytes(pickle.dumps(rank * 2))
    (tmp_path / "value.1.4242").write_bytes(b"half")  # its worker was killed while it wrote
    assert results.of_folder(str(tmp_path)) == {0: 0, 2: 4, 10: 20}


def test_AWorkerThatIsDroppedWithinAGraphEndsAsOneThatIsDropped(monkeypatch):
    """What TensorFlow raises is an error of its own."""
    dropped = errors.WorkerDroppedError("silent for too long")
    calling = types.SimpleNamespace(error_behind=lambda error: dropped)
    monkeypatch.setitem(sys.modules, "ringmaster.tensorflow.calling", calling)

    def trains():
        raise RuntimeError("silent for too long")

    with pytest.raises(errors.WorkerDroppedError) as raised:
        worker.call(function.pack(trains, (), {}, []), report=None)
    assert raised.value.code == errors.EXIT_DROPPED


def unknown_class_of_a_worker():
    raise AssertionError


@pytest.mark.parametrize("arguments, says", [
    ({"np": 0}, "np: is 0, must be a whole number: below 0 for workers on this machine"),
    ({"np": "2"}, "np: is '2'"),
    ({"np": 2}, "image: is missing"),
    ({"np": -2, "image": "i"}, "image: is for workers on a cluster"),
    ({"np": -2, "driver_log_verbosity": "some"}, "is 'some', allowed are log_callback_only and all"),
    ({"np": -2, "min_np": 3}, "min_np: is 3, allowed are 1 to 2"),
    ({"np": 3, "image": "i", "slots": 2}, "slots: is 2, np and min_np must be multiples of it"),
    ({"np": 4, "image": "i", "slots": 2, "min_np": 3}, "np and min_np must be multiples"),
    ({"np": 2, "image": "i", "pod": {"containers": []}}, "pod: containers is set by HorovodRunner"),
    ({"np": 2, "image": "i", "container": {"command": []}}, "container: command is set by"),
])
def test_WrongArgumentsOfARunnerAreNamed(arguments, says):
    with pytest.raises(ValueError) as raised:
        HorovodRunner(**arguments)
    assert says in str(raised.value)


def test_AJobHasWhatARunnerWasGiven(monkeypatch):
    monkeypatch.setenv("RINGMASTER_BIN", sys.executable)
    runner = HorovodRunner(np=4, image="i", slots=2, min_np=2, python="py", timeout=60,
                           env={"A": 1}, resources={"nvidia.com/gpu": 2},
                           pod={"nodeSelector": {"n": "1"}, "volumes": [{"name": "data"}]},
                           container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]})
    job = cluster.Job(adds, {"a": 1}, runner._place, runner._shape, None, None, None)
    spec = job._manifest(suspend=True)["spec"]
    assert (spec["slotsPerWorker"], spec["worker"]["replicas"]) == (2, 2)
    assert spec["elasticPolicy"] == {"minReplicas": 1, "maxReplicas": 2}
    assert spec["runPolicy"]["suspend"] and spec["runPolicy"]["activeDeadlineSeconds"] == 60
    pod = spec["worker"]["template"]["spec"]
    assert pod["nodeSelector"] == {"n": "1"}
    assert [volume["name"] for volume in pod["volumes"]] == ["data", "runner-call"]
    container, = pod["containers"]
    assert container["image"] == "i" and container["command"][0] == "py"
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert {"name": "A", "value": "1"} in container["env"]
    assert [mount["name"] for mount in container["volumeMounts"]] == ["data", "runner-call"]


@pytest.mark.parametrize("name, begins", [("My_Train", "my-train-"), ("<lambda>", "lambda-"),
                                          ("_", "run-"), ("2nd", "run-2nd-"), ("x" * 90, "x" * 30)])
def test_AJobsNameIsWhatKubernetesTakes(name, begins):
    made = cluster._job_name(name)
    assert made.startswith(begins) and len(made) <= 50 and made == made.lower(), made
    assert made != cluster._job_name(name)


@pytest.mark.parametrize("status, says", [
    ({}, "Pending"),
    ({"state": "Running", "worldSize": 1}, "Running, 1 worker"),
    ({"state": "Failed", "worldSize": 0}, "Failed"),
    ({"state": "Starting", "conditions": [
        {"type": "Created", "status": "True", "message": "2 pods"},
        {"type": "Started", "status": "False", "message": "0 of 2 pods ready"}]},
     "Starting: 0 of 2 pods ready"),
])
def test_ProgressSaysWhatHoldsAJobUp(status, says):
    assert cluster._progress(status) == says


class Silent:
    """Logs that neither say anything nor end."""

    def next_line(self, _):
        return None


def test_LogsThatDontEndHoldNobodyUp(monkeypatch):
    monkeypatch.setattr(cluster, "_LAST_WORDS", 0.0)
    monkeypatch.setattr(cluster, "_LOOK_STARTING", 0.0)
    job = waiting_job(monkeypatch, [])
    states = iter(["Starting", "Running", "Succeeded"])
    monkeypatch.setattr(cluster, "_LOOK_RUNNING", 0.0)
    monkeypatch.setattr(job, "_look", lambda: next(states))
    job._follow(Silent())
    assert list(states) == []


def test_AJobThatHasTrainedIsNotGivenUpAsSoonAsAnOperatorFindsFaultWithIt(monkeypatch):
    """One of another version may, until that of its version leads."""
    job = waiting_job(monkeypatch, [])
    status = {"state": "Invalid", "epoch": 1 << 40}
    monkeypatch.setattr(job, "_get", lambda: {"status": status})
    assert not job._is_over(job._look())
    monkeypatch.setattr(cluster, "_MOST_INVALID", 0.0)
    assert job._is_over(job._look()), "that lasts"
    monkeypatch.undo()
    never_trained = waiting_job(monkeypatch, [])
    monkeypatch.setattr(never_trained, "_get", lambda: {"status": {"state": "Invalid"}})
    assert never_trained._is_over(never_trained._look())


def waiting_job(monkeypatch, told):
    monkeypatch.setenv("RINGMASTER_BIN", sys.executable)
    runner = HorovodRunner(np=1, image="i")
    return cluster.Job(adds, {}, runner._place, runner._shape, None, None, told.append)


def test_AClusterThatIsAwayIsAskedAgainForAWhile(monkeypatch):
    told = []
    job = waiting_job(monkeypatch, told)
    answers = [LaunchError("timeout"), LaunchError("refused"), {"status": {"state": "Running"}}]

    def get():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(job, "_get", get)
    assert [job._look() for _ in range(3)] == ["Unknown", "Unknown", "Running"]
    assert told == ["no answer from the cluster; asking again", "Running"]
    monkeypatch.setattr(cluster, "_MOST_AWAY", -1.0)
    for error in ("timeout", 'jobs "x" is forbidden', 'horovodjobs "x" not found'):
        answers.append(LaunchError(error))
        with pytest.raises(LaunchError, match=error):
            job._look()
        monkeypatch.setattr(cluster, "_MOST_AWAY", 600.0)


def test_LogsThatMayNotBeReadEndTheJobBeforeItHasTrained(monkeypatch):
    told = []
    job = waiting_job(monkeypatch, told)
    with pytest.raises(LaunchError, match="can't be read: ringmaster: pods is forbidden"):
        job._check_logs(1, "ringmaster: pods is forbidden")
    job._check_logs(0, "")
    assert told == []
    job._check_logs(1, "ringmaster: no connection")
    assert "are read at the end: ringmaster: no connection" in told[0]


def test_AByteThatIsNoUtf8DoesNotHideWhyAJobHasFailed(monkeypatch, tmp_path):
    says = make_program("#!/bin/sh\nprintf 'worker \\377 was killed\\n'\n", tmp_path, "ringmaster")
    job = waiting_job(monkeypatch, [])
    monkeypatch.setattr(job, "_program", says)
    assert job._run("why", job.name, may_fail=True) == "worker \ufffd was killed\n"


def test_AVariableOfTheWorkersMayBeANumber(monkeypatch, tmp_path):
    kept = tmp_path / "kept"
    monkeypatch.setenv("RINGMASTER_BIN", make_program(
        "#!/bin/sh\necho $OMP_NUM_THREADS > %s\necho 'ringmaster: as wished' >&2\nexit 1\n" % kept,
        tmp_path, "bin", "ringmaster"))
    with pytest.raises(LaunchError):
        HorovodRunner(np=-1, env={"OMP_NUM_THREADS": 3}).run(os.getpid)
    assert kept.read_text() == "3\n"


def test_AFunctionOfAnInstalledPackageBringsNoModules():
    assert modules.folder_of(os.path.join) is None and modules.folder_of(pytest.fixture) is None
    assert modules.folder_of(adds) == os.path.dirname(os.path.abspath(__file__))
