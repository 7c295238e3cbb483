"""The commands that people type at a job in a second terminal, on a run and as on a cluster."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading

import pytest

import harness
import optional
from harness import BIN, Run, manifest, ringmaster, wait_for


def job(out, **fields):
    """Workers that say who they are, then train until `out`/stop is there."""
    shell = 'echo "worker $HOROVOD_RANK begins"; echo "its last line"; exec %s %s' % (harness.WORKER, out)
    return manifest(command=["sh", "-c", shell], **fields)


class Reader:
    """A command that goes on, and what it has printed."""

    def __init__(self, *words, **env):
        self.process = subprocess.Popen([str(BIN / "ringmaster"), *map(str, words)], stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL, env=harness.environment(**env))
        self.lines = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def has(self, pattern):
        return wait_for("a line like %r" % pattern, lambda: any(re.search(pattern, line) for line in list(self.lines)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.thread.join(5)


def test_looking_at_a_job_from_beginning_to_end(write, tmp_path):
    with Run(write(job(tmp_path, replicas=1))) as run:
        run.world("job", 1)
        with (Reader("get", "-w", "--run-dir", run.dir) as watch, Reader("logs", "-f", "job", "--run-dir", run.dir) as logs,
              Reader("get", "-w", "-o", "yaml", "--run-dir", run.dir) as objects):
            watch.has(r"^JOB +STATE")
            watch.has(r"^job +Running +1/1")
            logs.has(r"^\[0\] worker 0 begins")
            assert re.match(r"job trains: step \d+, \d+ more in 2 s, 1 worker, view 1\.\d+; nothing holds it up\n", run.do("why", "job"))

            run.do("scale", "job", "--replicas", 2)
            run.world("job", 2)
            watch.has(r"^job +Running +2/2 +2")
            logs.has(r"^\[1\] worker 1 begins")  # a pod that joined later
            objects.has(r"^---$")
            objects.has(r"^ +pid: [1-9]")  # of a worker, which its sidecar alone knows

            assert run.do("logs", "job", "--tail", 1) == "[0] its last line\n[1] its last line\n"
            assert run.do("logs", "job", "--rank", 1) == "[1] worker 1 begins\n[1] its last line\n"
            assert run.do("logs", "job-worker-0", "--tail", 1) == "its last line\n"
            assert re.search(r"^default +job +Running", run.do("get", "-A"), re.M)
            described = run.do("describe", "job")
            for words in ("Running     True   Training", "job-worker-1", "PodJoined"):
                assert words in described, described
            assert re.search(r"^Changes:\n(.*\n)*? +\d+s ago  view 1\.\d+, 2 workers: PodJoined; job-worker-1 joined", described, re.M), described
            assert re.match(r"JOB +STATE", run.do("status", "job"))
            (tmp_path / "stop").touch()
            assert run.wait() == 0
            assert logs.process.wait(harness.PATIENCE) == 0
            assert watch.process.wait(harness.PATIENCE) == 0


def test_top_names_the_rank_that_the_others_wait_for(write, tmp_path):
    with Run(write(job(tmp_path, replicas=2))) as run:
        run.world("job", 2)
        (tmp_path / "absent.1").touch()  # rank 1 begins no step any more
        wait_for("rank 0 to be blocked", lambda: re.search(r"^0 .* 0% +100% +100% +0% ", run.do("top", "job", "--interval", "0.5"), re.M))
        text = run.do("top", "job", "--interval", "0.5")
        assert re.match(r"job   view 1\.\d+   2 workers   step \d+\nRANK +WORKER +STEP +COMPUTES +BLOCKED +WAITING +RUNNING +MB/S\n", text)
        assert re.search(r"^1 .* 100% +0% +0% +0% +0$", text, re.M)
        assert "The others wait for rank 1 (job-worker-1): it waits 0% of its time, each of them 100% or more." in text
        (tmp_path / "absent.1").unlink()
        (tmp_path / "stop").touch()


def test_bench_measures_each_operation(tmp_path):
    done = ringmaster("bench", "-np", 3, "--min-bytes", "4K", "--max-bytes", "64K", "--seconds", 0.02, "--model-bytes", "1M", "--step-ms", 5,
                      "--csv", "out.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()]
    measured = {(row[0], int(row[2])) for row in rows[1:]}
    sizes = [4104, 16392, 65544]  # 4, 16 and 64 KiB in floats that three ranks can share
    operations = ("allreduce", "allgather", "reducescatter", "broadcast", "alltoall")
    assert measured == {(name, size) for name in operations for size in sizes} | {("allreduce", 1048584), ("barrier", 0)}
    assert all(row[1] == "3" and float(row[4]) > 0 for row in rows[1:])
    assert re.search(r"Cost model of this run: [\d.]+ us a hop", done.stdout)
    assert re.search(r"Measured here with 3 ranks: [\d.]+%; the model says [\d.]+%", done.stdout)


def test_the_example_of_bench_runs_as_it_is(tmp_path):
    # Four ranks that wait for each other some 40,000 times: seconds on an idle machine, minutes beside other work.
    done = ringmaster("run", "--plain", "examples/bench/job.yaml", cwd=harness.REPOSITORY, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Measured here with 4 ranks", done.stdout)


def test_why_says_what_the_condition_says(write):
    with Run(write(manifest(command=["sleep", "600"], replicas=1))) as run:
        def waits():
            status = run.job("job").get("status", {})
            return next((c["message"] for c in status.get("conditions", []) if c["reason"] == "WaitingForInit"), None)
        message = wait_for("a job that waits for init()", waits, alive=run.alive)
        assert run.do("why", "job").startswith("job: %s (WaitingForInit" % message)
        run.line(re.escape(message))  # and so does the run itself


def test_the_kubeconfig_of_the_environment_and_kubectls_plugin(write, tmp_path):
    with Run(write(job(tmp_path, replicas=1))) as run, tempfile.TemporaryDirectory() as folder:
        run.world("job", 1)
        kubeconfig = str(run.dir / "kubeconfig")
        done = ringmaster("get", KUBECONFIG=kubeconfig)
        assert done.returncode == 0 and "Running" in done.stdout, done.stderr
        done = ringmaster("get", "--context", "nowhere", KUBECONFIG=kubeconfig)
        assert done.returncode == 2 and '"nowhere"' in done.stderr, done.stderr

        plugin = pathlib.Path(folder) / "kubectl-ringmaster"
        plugin.symlink_to(BIN / "ringmaster")
        done = ringmaster("why", "job", program=[str(plugin)], KUBECONFIG=kubeconfig)
        assert done.returncode == 0 and "trains" in done.stdout, done.stderr
        assert "kubectl ringmaster why" in ringmaster("why", "-h", program=[str(plugin)]).stdout
        (tmp_path / "stop").touch()
        assert run.wait() == 0


def test_apply_makes_and_changes_jobs_and_what_they_use(write, tmp_path):
    keeper = write(manifest("keeper", ["sleep", "600"], replicas=1), "keeper.yaml")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words"}, "stringData": {"said": "open sesame"}}
    uses = json.loads(manifest("uses", ["sh", "-c", 'echo "it is $SAID"; exec sleep 600'], replicas=1))
    uses["spec"]["worker"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "SAID", "valueFrom": {"secretKeyRef": {"name": "words", "key": "said"}}}]
    both = write(json.dumps(secret) + "\n---\n" + json.dumps(uses), "both.yaml")
    with Run(keeper) as run:
        run.line("starting")
        for wrong, says in (({"kind": "Pod", "apiVersion": "v1"}, "it has to be a HorovodJob, a Secret or a ConfigMap"),
                            ({"kind": "Secret", "apiVersion": "v1"}, "metadata.name: is missing"),
                            (dict(uses, spec=dict(uses["spec"], slotsPerWorker=0)), "spec.slotsPerWorker"),
                            (dict(secret, metadata={"name": "words", "namespace": "other"}), 'metadata.namespace: is "other", and -n says "mine"')):
            refused = run.command("apply", both, write(json.dumps(wrong), "wrong.yaml"), "-n", "mine")
            assert refused.returncode == 2 and says in refused.stderr, refused.stderr
        assert run.command("apply", "/nowhere.yaml").returncode == 2
        assert run.job("uses") == {}, "nothing was sent"

        assert run.do("apply", both) == "Secret words applied\nHorovodJob uses applied\n"
        wait_for("its word", lambda: "it is open sesame" in run.command("logs", "uses").stdout, alive=run.alive)
        uses["spec"]["runPolicy"] = {"backoffLimit": 3}
        again = subprocess.run([*run.program, "apply", "-", "--run-dir", str(run.dir)], input=json.dumps(uses), text=True, capture_output=True,
                               env=harness.environment(), timeout=60)
        assert again.returncode == 0, again.stderr
        assert run.job("uses")["spec"]["runPolicy"]["backoffLimit"] == 3

        run.do("scale", "uses", "--replicas", "2")
        refused = run.command("apply", both)
        assert refused.returncode == 1 and ".spec.worker.replicas" in refused.stderr and "--force-conflicts takes" in refused.stderr, refused.stderr
        assert run.job("uses")["spec"]["worker"]["replicas"] == 2
        run.do("apply", "--force-conflicts", both)
        assert run.job("uses")["spec"]["worker"]["replicas"] == 1


def test_convert_prints_what_its_page_shows(tmp_path):
    page = (harness.REPOSITORY / "docs/from-kubeflow-trainer.md").read_text()
    given, result = re.findall(r"```yaml\n(.*?)```", page, re.S)
    shown = re.search(r"\$ ringmaster convert trainjob\.yaml > job\.yaml\n(.*?)\$ kubectl", page, re.S)[1]
    (tmp_path / "trainjob.yaml").write_text(given)
    done = subprocess.run(["bash", "-c", "ringmaster convert trainjob.yaml > job.yaml"], cwd=tmp_path, env=harness.environment(), timeout=60,
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.stderr == shown and done.returncode == 0
    assert (tmp_path / "job.yaml").read_text() == result


MPI_JOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mnist}
spec:
  slotsPerWorker: 1
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - {name: launcher, image: "mnist:1", command: [mpirun, --allow-run-as-root, -np, "2", -bind-to, none, -map-by, slot, -x, PATH,
                                                         -mca, pml, ob1, python, train.py]}
    Worker: {replicas: 2, template: {spec: {containers: [{name: worker, image: "mnist:1"}]}}}
"""


def test_convert_prints_what_the_page_on_the_mpi_operator_shows(tmp_path):
    page = (harness.REPOSITORY / "docs/from-mpi-operator.md").read_text()
    shown = re.search(r"\$ ringmaster convert mpijob\.yaml > job\.yaml\n(.*?)\$ kubectl", page, re.S)[1]
    (tmp_path / "mpijob.yaml").write_text(MPI_JOB)
    done = ringmaster("convert", "mpijob.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, shown)


def test_convert_of_an_option_that_it_does_not_know_prints_the_job_and_ends_with_2(tmp_path):
    (tmp_path / "mpijob.yaml").write_text(MPI_JOB.replace("-x, PATH", "--news, '3'"))
    done = ringmaster("convert", "mpijob.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "kind: HorovodJob" in done.stdout, done.stdout + done.stderr
    assert done.stderr.endswith("ringmaster: to be mended by hand before it is taken:\nspec.worker.template.spec.containers[].command: '--news' is no option of "
                                "mpirun that is known here: if a value follows it, '3' is that value and not the program\n"), done.stderr


def test_of_two_runs_none_is_changed_unless_it_is_named(write, tmp_path):
    with tempfile.TemporaryDirectory(prefix="rm-") as home:
        runs = pathlib.Path(home) / ("ringmaster-%d" % os.getuid())
        runs.mkdir(mode=0o700)
        with Run("--run-dir", runs / "a", write(job(tmp_path, replicas=1))) as one, \
                Run("--run-dir", runs / "b", write(job(tmp_path, replicas=1), "b.yaml")) as two:
            for run in (one, two):
                run.line("view 1.1")
            done = ringmaster("delete", "job", RINGMASTER_RUNS=home)
            assert done.returncode == 2 and str(runs / "a") in done.stderr and str(runs / "b") in done.stderr, done.stderr
            (tmp_path / "stop").touch()
            assert one.wait() == 0 and two.wait() == 0


def complete(*words, **env):
    script = 'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ringmaster; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", script, str(BIN / "ringmaster"), "ringmaster", *words], capture_output=True, text=True,
                          timeout=harness.PATIENCE, env=harness.environment(**env))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_bash_completes_commands_options_and_files(tmp_path):
    assert complete("des") == ["describe"]
    assert complete("logs", "--ta") == ["--tail"]
    (tmp_path / "job.yaml").touch()
    assert complete("run", str(tmp_path / "jo")) == [str(tmp_path / "job.yaml")]
    assert complete("get", "--kubeconfig", str(tmp_path / "jo")) == [str(tmp_path / "job.yaml")]
    assert complete("convert", str(tmp_path / "jo")) == [str(tmp_path / "job.yaml")]
    assert complete("timeline", "digits", "-o", str(tmp_path / "jo")) == [str(tmp_path / "job.yaml")]
    assert complete("status", "--all") == ["--all-namespaces"]
    assert complete("get", "-o", "") == ["json", "yaml", "wide", "table"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    # bash takes an option with "=" for three words.
    assert complete("get", "--output", "=", "js") == ["json"]
    assert complete("get", "--kubeconfig", "=", "~/jo", HOME=str(tmp_path)) == ["~/job.yaml"]
    assert "~/job.yaml" in complete("bench", "--csv", "=", "~/", HOME=str(tmp_path))


def test_kubectl_completes_its_plugin(tmp_path):
    (tmp_path / "kubectl-ringmaster").symlink_to(BIN / "ringmaster")
    (tmp_path / "kubectl_complete-ringmaster").symlink_to(BIN / "ringmaster")
    asked = [str(tmp_path / "kubectl_complete-ringmaster")]
    if shutil.which("kubectl"):
        asked = ["kubectl", "__complete", "ringmaster"]

    def offered(*words):
        done = subprocess.run([*asked, *words], capture_output=True, text=True, timeout=harness.PATIENCE,
                              env=harness.environment(PATH="%s:%s" % (tmp_path, os.environ["PATH"])))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()
    assert offered("des") == ["describe", ":4"]
    assert offered("get", "digits", "-o", "j") == ["json", ":4"]
    assert offered("convert", "") == [":0"], "files"


class Zsh:
    """A zsh on a terminal, with our completion. It draws completed words only there."""

    def __init__(self, tmp_path, **env):
        self.screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        self.process = subprocess.Popen(["zsh", "-f", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
                                        env=harness.environment(TERM="dumb", PS1="ready> ", HOME=str(tmp_path), **env))
        os.close(terminal)
        self.type("autoload -Uz compinit && compinit -u -D; source <(%s completion zsh) && echo loa''ded\n" % (BIN / "ringmaster"), "loaded")

    def type(self, keys, expected):
        """Fails if that isn't drawn."""
        os.write(self.screen, keys.encode())
        drawn = b""

        def there():
            nonlocal drawn
            if select.select([self.screen], [], [], 0.1)[0]:
                drawn += os.read(self.screen, 4096)
            return expected in drawn.decode(errors="replace")
        try:
            wait_for("%r after %r" % (expected, keys), there)
        except AssertionError as error:
            raise AssertionError("%s; there was %r" % (error, drawn)) from None

    def completes(self, line, expected):
        self.type("\x15" + line + "\t", expected)  # what stands in the line is taken away first

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.screen)


def test_zsh_completes_commands_options_and_files(tmp_path):
    optional.program("zsh")
    (tmp_path / "job.yaml").touch()
    with Zsh(tmp_path) as zsh:
        zsh.completes("ringmaster descr", "describe ")
        zsh.completes("ringmaster logs --ta", "--tail ")
        zsh.completes("ringmaster run %s/jo" % tmp_path, "/job.yaml ")
        zsh.completes("ringmaster get --kubeconfig %s/jo" % tmp_path, "/job.yaml ")
        zsh.completes("ringmaster convert %s/jo" % tmp_path, "/job.yaml ")
        zsh.completes("ringmaster status --all", "--all-namespaces ")
        zsh.completes("ringmaster get -o wi", "wide ")
        zsh.completes("ringmaster completion fi", "fish ")
        zsh.completes("ringmaster get --output=wi", "--output=wide ")
        zsh.completes("ringmaster get --kubeconfig=~/jo", "--kubeconfig=~/job.yaml ")
        zsh.completes("ringmaster get --context=x --kubeconfig=%s/jo" % tmp_path, "/job.yaml ")


def fish(home, line, **env):
    done = subprocess.run(["fish", "--no-config", "-c", "%s completion fish | source; complete -C '%s'" % (BIN / "ringmaster", line)],
                          capture_output=True, text=True, timeout=harness.PATIENCE, stdin=subprocess.DEVNULL,
                          env=harness.environment(HOME=str(home), **env))  # it leaves folders there
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [offered.split("\t")[0] for offered in done.stdout.splitlines()]


def test_fish_completes_commands_options_and_files(tmp_path):
    optional.program("fish")
    assert fish(tmp_path, "ringmaster des") == ["describe"]
    assert fish(tmp_path, "ringmaster logs --ta") == ["--tail"]
    (tmp_path / "job.yaml").touch()
    assert fish(tmp_path, "ringmaster run %s/jo" % tmp_path) == [str(tmp_path / "job.yaml")]
    assert fish(tmp_path, "ringmaster get --kubeconfig %s/jo" % tmp_path) == [str(tmp_path / "job.yaml")]
    assert fish(tmp_path, "ringmaster timeline digits -o %s/jo" % tmp_path) == [str(tmp_path / "job.yaml")]
    assert fish(tmp_path, "ringmaster status --all") == ["--all-namespaces"]
    assert fish(tmp_path, "ringmaster get -o wi") == ["wide"]
    assert fish(tmp_path, "ringmaster completion fi") == ["fish"]
    assert fish(tmp_path, "ringmaster get --kubeconfig=~/jo") == ["--kubeconfig=~/job.yaml"]
    assert fish(tmp_path, "ringmaster logs %s/jo" % tmp_path) == [], "it takes no files"


def test_the_names_of_jobs_and_pods_are_completed_of_the_run_that_the_command_would_ask(write, tmp_path):
    (tmp_path / "kubectl_complete-ringmaster").symlink_to(BIN / "ringmaster")
    with tempfile.TemporaryDirectory(prefix="rm-") as home:
        runs = pathlib.Path(home) / ("ringmaster-%d" % os.getuid())
        runs.mkdir(mode=0o700)
        assert not set(complete("why", "", RINGMASTER_RUNS=home)) & {"job", "nothing"}, "there is no run yet"
        with Run("--run-dir", runs / "a", write(job(tmp_path, replicas=1))) as run:
            run.world("job", 1)
            for command in ("get", "describe", "why", "top", "timeline", "scale", "delete"):
                assert complete(command, "", RINGMASTER_RUNS=home) == ["job"], command
            for command in ("drain", "kill"):
                assert complete(command, "jo", RINGMASTER_RUNS=home) == ["job-worker-0"], command
            assert complete("logs", "-f", "--tail", "3", "", RINGMASTER_RUNS=home) == ["job", "job-worker-0"]
            assert complete("logs", "--run-dir", str(run.dir), "job-") == ["job-worker-0"]
            assert complete("logs", "--run-dir", "=", str(run.dir), "job-") == ["job-worker-0"], "as bash divides it"
            assert run.command("why", "job").returncode == ringmaster("why", "job", "--run-dir=~/a", HOME=str(runs)).returncode == 0
            assert complete("why", "other", RINGMASTER_RUNS=home) == complete("logs", "--tail", "", RINGMASTER_RUNS=home) == []
            assert complete("why", "job", "--ru", RINGMASTER_RUNS=home) == ["--run-dir"]
            with_kubeconfig = subprocess.run([tmp_path / "kubectl_complete-ringmaster", "why", ""], capture_output=True, text=True,
                                             env=harness.environment(KUBECONFIG=str(run.dir / "kubeconfig")), timeout=harness.PATIENCE)
            assert with_kubeconfig.stdout.splitlines() == ["job", ":4"], with_kubeconfig.stderr
            if shutil.which("fish"):
                assert fish(tmp_path, "ringmaster why ", RINGMASTER_RUNS=home) == ["job"]
                assert fish(tmp_path, "ringmaster drain job-", RINGMASTER_RUNS=home) == ["job-worker-0"]
            if shutil.which("zsh"):
                with Zsh(tmp_path, RINGMASTER_RUNS=home) as zsh:
                    zsh.completes("ringmaster why jo", "job ")
                    zsh.completes("ringmaster logs --tail 3 job-", "job-worker-0 ")
            (tmp_path / "stop").touch()
            assert run.wait() == 0


def test_completion_waits_no_longer_than_a_person_for_a_cluster_that_does_not_answer(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (tmp_path / "kubeconfig").write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:%d" % silent.getsockname()[1], "insecure-skip-tls-verify": True}}],
            "users": [{"name": "a", "user": {"token": "t"}}]}))
        for command in ("why", "logs"):
            done = ringmaster("__complete", command, "--kubeconfig", tmp_path / "kubeconfig", "", timeout=20)  # every other call waits 30 s
            assert (done.stdout, done.stderr, done.returncode) in ((":4\n", "", 0), ("", "", 0))


def test_where_the_log_of_a_pod_that_has_left_is_can_be_asked(write, tmp_path):
    with Run(write(manifest(command=[harness.WORKER, tmp_path]))) as run:
        epoch = run.world("job", 2)
        run.do("scale", "job", "--replicas", 1)
        run.world("job", 1, epoch)
        said = wait_for("the pod to go", lambda: re.search(r"^job-worker-1 has left; what it printed is in (\S+)$",
                                                          run.command("logs", "job", "--rank", 1).stderr, re.M), alive=run.alive)
        assert pathlib.Path(said[1]) == run.dir / "logs/job-worker-1/worker.log" and pathlib.Path(said[1]).is_file()
        assert said[0] in run.command("logs", "job").stderr
        assert said[0] in run.command("logs", "job-worker-1").stderr
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


def test_commands_that_go_on_end_when_nobody_reads_them_any_more(write):
    text = manifest(command=["sh", "-c", "while sleep 0.05; do echo more; done"], replicas=1)
    with Run(write(text)) as run:
        wait_for("a line", lambda: "more" in run.command("logs", "job").stdout, alive=run.alive)
        for command in ("logs -f job", "logs -f job-worker-0"):
            done = subprocess.run(["bash", "-c", "ringmaster %s --run-dir %s | head -n 1; exit ${PIPESTATUS[0]}" % (command, run.dir)],
                                  capture_output=True, text=True, env=harness.environment(), timeout=harness.PATIENCE, stdin=subprocess.DEVNULL)
            assert len(done.stdout.splitlines()) == 1 and done.stderr == "", done
            assert done.returncode == 128 + signal.SIGPIPE and run.alive(), done


def test_a_script_without_its_interpreter_is_understood(write, tmp_path):
    write("print('hello')", "train.py")
    for words in (("run", "-np", 2, "train.py"), ("run", "train.py")):
        done = ringmaster(*words, cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == "", done.stdout
        assert "python3 train.py" in done.stderr


def test_after_a_run_that_failed_the_commands_say_where_its_logs_are(tmp_path):
    with tempfile.TemporaryDirectory(prefix="rm-") as home:
        assert ringmaster("run", "-np", 1, "false", RINGMASTER_RUNS=home).returncode == 1
        done = ringmaster("why", "false", RINGMASTER_RUNS=home)
        logs = re.search(r"logs of the last run are in (\S+)", done.stderr).group(1)
        assert list(pathlib.Path(logs).glob("*/worker.log")), done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
