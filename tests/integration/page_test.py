"""The page of `ringmaster ui` and of `ringmaster run --ui`, in a real browser, on real runs; and the login to that of an operator."""

import base64
import contextlib
import json
import re
import subprocess
import time

from selenium.webdriver.common.by import By

import harness
from browser import chromium, narrow
from harness import BIN, Run, manifest, ringmaster, wait_for
from commands_test import Reader


def click(page, selector):
    """In one go: the page may draw the element anew between two commands of the driver."""
    page.execute_script("document.querySelector(arguments[0]).click()", selector)


def text(page, css):
    return page.find_element(By.CSS_SELECTOR, css).text


def rows(page, table):
    """Of each row its cells."""
    return page.execute_script("return [...document.querySelectorAll('#%s tbody tr')].map(r => [...r.cells].map(c => c.innerText))" % table)


def drawn(page, canvas="heat"):
    """How many pixels of a picture are painted."""
    return page.execute_script("const c = document.getElementById('%s'); " % canvas +
                               "const d = c.getContext('2d').getImageData(40, 0, c.width - 40, c.height).data; "
                               "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n")


def test_the_page_shows_a_job_that_loses_a_worker(write, tmp_path):
    job = manifest(command=[str(harness.WORKER), str(tmp_path)], replicas=3)
    with Run(write(job)) as run:
        run.world("job", 3)
        wait_for("steps before anybody looks", lambda: all(worker["step"] > 20 for worker in run.workers("job").values()))
        with Reader("ui", "--interval", "0.3", "--run-dir", run.dir) as ui:
            ui.has(r"^http://127\.0\.0\.1:\d+/\?token=\w+$")
            with chromium() as page:
                page.get(ui.lines[0])
                wait_for("three ranks", lambda: len(rows(page, "ranks")) == 3)
                assert text(page, "#state") == "Running"
                assert text(page, "#workers") == "3"
                assert "token" not in page.current_url
                assert page.execute_script("return page.past") > 0, "what was before somebody looked is not shown"
                first = int(text(page, "#step").replace(",", ""))
                wait_for("more steps", lambda: int(text(page, "#step").replace(",", "")) > first)
                wait_for("the heat map", lambda: drawn(page) > 100)
                assert page.execute_script("return document.querySelectorAll('.u-wrap canvas').length") == 3
                wait_for("the timeline", lambda: drawn(page, "timeline-lanes") > 100)
                lanes = page.execute_script("return timeline.shown.lanes.map(lane => [lane.rank, lane.runs.length > 0, lane.waits.length > 0, lane.steps.length > 0])")
                assert lanes == [[rank, True, True, True] for rank in range(3)]
                page.execute_script("const at = timeline.shown.lanes[1].runs[0]; const box = document.getElementById('timeline-lanes').getBoundingClientRect(); "
                                    "chooseBar({clientX: box.left + LANES.margin + at[0] * (box.width - LANES.margin - 4) / timeline.shown.ms, "
                                    "clientY: box.top + LANES.changes + 1.5 * LANES.height})")
                assert re.match(r"Rank 1 \(job-worker-\d\): .*, [\d.]+ m?s$", text(page, "#timeline-chosen"))

                run.do("kill", "job-worker-1", "--worker", "0")
                lost = wait_for("the change", lambda: [row for row in rows(page, "changes") if "WorkerLost" in row[2]])[0]
                assert lost[2] == "WorkerLost: job-worker-1 lost" and lost[3] == "2"
                wait_for("its pause", lambda: any("WorkerLost" in row[2] and re.search(r"\d m?s$", row[4]) for row in rows(page, "changes")))

                click(page, "#ranks tbody button")
                wait_for("a log", lambda: "..." != text(page, "#log-text"))
                assert text(page, "#log-of").startswith("job-worker-")

                wait_for("the restarted worker", lambda: text(page, "#workers") == "3")
                (tmp_path / "absent.1").touch()  # the rank that the others wait for is named
                wait_for("the straggler", lambda: "The others wait for rank 1 (" in text(page, "#straggler"))
                (tmp_path / "absent.1").unlink()
                wait_for("it in the timeline", lambda: "Rank 1 (" in text(page, "#timeline-says") or stand_still(tmp_path / "absent.1", page))

                narrow(page, 400, 900)
                wait_for("the narrow layout", lambda: page.execute_script("return window.innerWidth === 400 && document.documentElement.scrollWidth <= 400"))
                complaints = [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"]
                assert complaints == []

                (tmp_path / "stop").touch()
                wait_for("the end", lambda: not run.alive() or text(page, "#state") == "Succeeded")
                ui.process.wait(30)
                wait_for("that nobody answers any more", lambda: "not connected" in text(page, "#connection"))


def stand_still(absent, page):
    """The worker of one rank does, while the page takes a look."""
    absent.touch()
    looks = len(page.execute_script("return page.samples"))
    wait_for("a look", lambda: len(page.execute_script("return page.samples")) > looks)
    absent.unlink()


def luminance(css):
    """Of a color as a browser says it, 0 (black) to 1."""
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", css)[:3])
    return 0.2126 * red ** 2.2 + 0.7152 * green ** 2.2 + 0.0722 * blue ** 2.2


def contrast(page, css):
    """Between the text of an element and what is behind it (WCAG: 4.5 is readable)."""
    front, ground = page.execute_script(
        "let at = document.querySelector(arguments[0]); const front = getComputedStyle(at).color; "
        "while (at.parentElement && getComputedStyle(at).backgroundColor === 'rgba(0, 0, 0, 0)') at = at.parentElement; "
        "return [front, getComputedStyle(at).backgroundColor]", css)
    light, dark = sorted((luminance(front), luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def waiting(name, priority):
    """A job for whose pods no node is the right one."""
    return manifest(name=name, command=["sleep", "600"], replicas=3, elasticPolicy__minReplicas=2, worker__template__spec__priority=priority,
                    worker__template__spec__nodeSelector={"gpu": "a100"})


def test_the_page_of_a_run_shows_the_line_and_is_dark_and_narrow_where_that_is_wanted(write, tmp_path):
    job = manifest(command=[str(harness.WORKER), str(tmp_path)], replicas=2)
    with Run("--ui", write(job)) as run, chromium(400, 900, dark=True) as page:
        page.get(run.line(r"page (http://127\.0\.0\.1:\d+/\?token=\w+)$")[1])
        wait_for("two ranks", lambda: len(rows(page, "ranks")) == 2, alive=run.alive)
        assert not page.find_element(By.ID, "line").is_displayed(), "nobody waits"
        for name, priority in (("first", 0), ("second", 0), ("important", 7)):
            run.do("apply", write(waiting(name, priority), name + ".yaml"))

        def line():
            return [[row[0], row[1], row[2]] for row in rows(page, "waiting")]
        wait_for("the line", lambda: line() == [["1", "default/important", "7"], ["2", "default/first", "0"], ["3", "default/second", "0"]],
                 alive=run.alive)
        _, _, _, waits, pods, lacks = rows(page, "waiting")[0]
        assert re.fullmatch(r"\d+ s|\d min", waits), waits
        assert pods == "needs 2 to 3"
        assert re.match(r"pods with a node: 0 of 3; .*didn't match Pod's node affinity/selector.*\(Unschedulable\)$", lacks), lacks

        assert luminance(page.execute_script("return getComputedStyle(document.body).backgroundColor")) < 0.05, "it is not dark"
        for css in ("h1", "#state", "#waiting td.why", "#waiting td[data-label]", ".cards span", "#heat-says", "#changes th", "#ranks td"):
            assert contrast(page, css) > 4.5, css
        assert page.execute_script("return [window.innerWidth, document.documentElement.scrollWidth]") == [400, 400], "it is wider than the window"
        for shows in ("share", "step", "own"):
            page.execute_script("document.getElementById('heat-shows').value = arguments[0]; drawHeat()", shows)
            wait_for("the rows of " + shows, lambda: drawn(page) > 20)
        assert re.match(r"0 to [\d.]+ m?s$", text(page, "#heat-scale"))

        click(page, "#waiting button")  # the first in the line is shown
        wait_for("the job that was chosen", lambda: text(page, "#state") == "Pending")
        wait_for("why it waits", lambda: "didn't match" in text(page, "#troubles"))
        for name in ("first", "second", "important"):
            run.do("delete", name)
        wait_for("an empty line", lambda: not page.find_element(By.ID, "line").is_displayed())
        assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


def test_a_job_whose_pods_have_all_been_replaced_is_shown_from_its_first_steps_on(write, tmp_path):
    job = manifest(command=[str(harness.WORKER), str(tmp_path)], replicas=2)
    with Run(write(job)) as run:
        epoch = run.world("job", 2)
        wait_for("steps", lambda: all(worker["step"] > 20 for worker in run.workers("job").values()))
        first, before = {pod["uid"] for pod in run.job("job")["status"]["pods"]}, time.time() * 1000
        told = 0
        for pod in sorted(name for name, _ in run.workers("job")):
            run.do("drain", pod)
            told += 1
            wait_for("what was before, told to the next one", lambda: sum(
                log.read_text().count("has been told") for log in run.dir.glob("logs/*/ringmaster-sidecar.log")) == told, alive=run.alive)
            epoch = run.world("job", 2, epoch)
        wait_for("two others", lambda: not first & {pod["uid"] for pod in run.job("job")["status"]["pods"]})
        with Reader("ui", "--run-dir", run.dir) as ui, chromium() as page:
            ui.has("^http")
            page.get(ui.lines[0])
            wait_for("the changes", lambda: sum("PodDrained" in row[2] for row in rows(page, "changes")) == 2)
            times, steps = page.execute_script("const past = page.samples.slice(0, page.past); return [past.map(s => s.t), past.map(s => s.step)]")
            assert times[0] < before and steps[0] < 20, "it knows the job since step %s" % steps[:1]
            assert times == sorted(times) and steps == sorted(steps)
            assert page.execute_script("return document.getElementById('since').textContent === new Date(page.samples[0].t).toLocaleString()")
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


def test_the_log_of_one_of_several_workers_of_a_pod_is_shown_by_itself(write, tmp_path):
    shell = 'echo "this is $HOROVOD_RANK"; exec %s %s' % (harness.WORKER, tmp_path)
    with Run(write(manifest(command=["sh", "-c", shell], replicas=2, slotsPerWorker=2))) as run:
        run.world("job", 4)
        with Reader("ui", "--run-dir", run.dir) as ui, chromium() as page:
            ui.has("^http")
            page.get(ui.lines[0])
            wait_for("four ranks", lambda: len(rows(page, "ranks")) == 4)
            page.execute_script("[...document.querySelectorAll('#ranks tbody tr')].find(r => r.cells[1].innerText === 'job-worker-1/1').querySelector('button').click()")
            wait_for("its own lines", lambda: "[3] this is 3" in text(page, "#log-text"))
            assert text(page, "#log-of") == "job-worker-1" and text(page, "#log-choice") == "only lines of [3]"
            assert "[2]" not in text(page, "#log-text")
            click(page, "#log-one")
            wait_for("those of the pod", lambda: "[2] this is 2" in text(page, "#log-text"))
            assert "[3] this is 3" in text(page, "#log-text")
        (tmp_path / "stop").touch()
        assert run.wait() == 0, run.text()


def test_whoever_lacks_the_token_sees_nothing(write, tmp_path):
    with Run(write(manifest(command=[str(harness.WORKER), str(tmp_path)], replicas=1))) as run:
        run.world("job", 1)
        with Reader("ui", "--run-dir", run.dir) as ui, chromium() as page:
            ui.has(r"^http")
            page.get(ui.lines[0].split("?")[0])
            assert text(page, "body") == "Open the address that the command has printed: it ends with ?token=..."
        (tmp_path / "stop").touch()


@contextlib.contextmanager
def api_server(folder):
    """The path of a kubeconfig. The server has no nodes, and knows the tokens that crd_server.cc names."""
    server = subprocess.Popen([str(BIN / "crd_server")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        at = json.loads(server.stdout.readline())
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:%d" % at["port"],
                                                   "certificate-authority-data": base64.b64encode(at["ca"].encode()).decode()}}],
            "users": [{"name": "u", "user": {"token": at["token"]}}]}))
        yield kubeconfig
    finally:
        server.stdin.close()  # by which it ends
        server.wait(30)
        server.stdout.close()


@contextlib.contextmanager
def operator(kubeconfig, folder):
    """The address of an operator's page."""
    log = folder / "operator.log"
    with log.open("w") as to:
        process = subprocess.Popen([str(BIN / "ringmaster-operator"), "--kubeconfig", str(kubeconfig), "--listen", "unix:%s" % (folder / "op.sock"),
                                    "--page-listen=127.0.0.1:0"], stdout=to, stderr=to, env=harness.environment())
    try:
        said = wait_for("the page", lambda: re.search(r"flag=--page-listen port=(\d+)\n", log.read_text()), alive=lambda: process.poll() is None)
        yield "http://127.0.0.1:%s/" % said[1]
    finally:
        process.terminate()
        process.wait(30)


def log_in(page, token):
    page.find_element(By.ID, "token").send_keys(token)
    page.find_element(By.CSS_SELECTOR, "#login button").click()


def test_an_operators_page_is_for_those_who_show_a_token_that_may(write, tmp_path):
    with api_server(tmp_path) as kubeconfig, operator(kubeconfig, tmp_path) as address, chromium() as page:
        done = ringmaster("apply", write(manifest("digits", ["sleep", "600"], replicas=2)), KUBECONFIG=str(kubeconfig))
        assert done.returncode == 0, done.stderr
        page.get(address)
        assert "kubectl create token" in text(page, "main")
        assert not page.find_element(By.ID, "says").is_displayed()
        assert page.execute_script("return document.activeElement.id") == "token"

        for token, says in (("made-up", "the API server doesn't know this token"), ("tenant", "tenant may not get /page: a ClusterRole")):
            log_in(page, token)
            wait_for("the refusal of " + token, lambda: says in text(page, "#says"))
            assert page.find_element(By.ID, "token").get_property("value") == "", "it is still there to be read"
            assert page.get_cookies() == []
        complaints = [entry["message"] for entry in page.get_log("browser") if entry["level"] == "SEVERE"]
        assert [one for one in complaints if not re.search(r"status of 40[13]", one)] == []

        log_in(page, "viewer")
        jobs = "return [...document.querySelectorAll('#jobs option')].map(job => job.value)"
        wait_for("the list of jobs", lambda: page.execute_script(jobs) == ["default/digits"])
        assert [(cookie["name"], cookie["httpOnly"], cookie["sameSite"]) for cookie in page.get_cookies()] == [("ringmaster-page", True, "Strict")]
        page.refresh()
        wait_for("the same without another login", lambda: page.find_elements(By.CSS_SELECTOR, "#jobs option"))
        assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
