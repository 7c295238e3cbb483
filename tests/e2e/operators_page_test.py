"""The page that an operator serves, and what a sidecar tells to curl: the commands of docs/operations.md are typed as they stand there. In a browser a job is
seen as it trains by who may, and nothing by who may not."""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import pytest
from selenium.webdriver.common.by import By

from harness import PATIENCE, REPOSITORY, SYSTEM
from browser import chromium
from rmcluster import layout

sys.path.insert(0, str(REPOSITORY / "tests/docs"))
import doc_commands  # noqa: E402

PAGE_SERVICE = "ringmaster-operator-page"


class Shell:
    """Types commands of docs/operations.md at the cluster, with names in the place of JOB, POD and NAME."""

    def __init__(self, cluster, **names):
        self.names = names
        self.env = dict(os.environ, PATH="%s:%s" % (layout.programs(), os.environ["PATH"]), KUBECONFIG=str(cluster.dir / "kubeconfig"), NO_PROXY="*")
        self.shown = [command for command, _ in doc_commands.commands(doc_commands.page_file("operations").read_text())]

    def command(self, begins):
        """As the page has it, without its comments."""
        text, = [command for command in self.shown if command.startswith(begins)]
        return re.sub(r"\b(JOB|POD|NAME)\b", lambda match: self.names[match[0]], re.sub(r"[ \t]+#.*", "", text))

    def type(self, begins):
        """What the command prints."""
        done = subprocess.run(["bash", "-c", self.command(begins)], cwd=REPOSITORY, env=self.env, text=True, capture_output=True, timeout=2 * PATIENCE,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextlib.contextmanager
    def goes_on(self):
        """A shell in which more is typed: write(text), and what it prints."""
        with tempfile.TemporaryFile("w+") as complaints:
            bash = subprocess.Popen(["bash"], cwd=REPOSITORY, env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints)
            terminal = Terminal(bash)
            try:
                yield terminal
            finally:
                terminal.type("kill $!; exit")  # of the command in its background
                bash.wait(30)
                complaints.seek(0)
                print(complaints.read(), "\n".join(terminal.lines), sep="\n")


class Terminal:
    def __init__(self, bash):
        self.bash = bash
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(iter(bash.stdout.readline, "")), daemon=True)
        self.reader.start()

    def type(self, text):
        self.bash.stdin.write(text + "\n")
        self.bash.stdin.flush()

    def line(self, pattern):
        """The match in a line that it has printed; None as long as there is none."""
        return next((found for found in (re.search(pattern, line) for line in list(self.lines)) if found), None)


def text(page, css):
    return page.find_element(By.CSS_SELECTOR, css).text


def log_in(page, token):
    page.find_element(By.ID, "token").send_keys(token)
    page.find_element(By.CSS_SELECTOR, "#login button").click()


@pytest.fixture
def team(operator):
    """A ServiceAccount `viewer` in the namespace `team`; the page is switched off again afterwards."""
    operator.kubectl("create", "namespace", "team")
    operator.kubectl("create", "serviceaccount", "-n", "team", "viewer")
    yield operator
    operator.kubectl("delete", "clusterrolebinding", "team-sees-the-page", "--ignore-not-found")
    operator.kubectl("delete", "namespace", "team", "--wait=false")
    operator.install_operator("--reuse-values", "--set", "page.enabled=false")


def is_served(cluster):
    slices = cluster.list("endpointslices", "kubernetes.io/service-name=" + PAGE_SERVICE, namespace=SYSTEM)
    return [end for each in slices for end in each.get("endpoints") or [] if end["conditions"].get("ready")]


def sees_the_job_as_it_trains(cluster, page):
    cluster.wait("two ranks", lambda: page.execute_script("return document.querySelectorAll('#ranks tbody tr').length === 2"))
    assert text(page, "#jobs").startswith("default/digits")
    assert text(page, "#state") == "Running" and text(page, "#workers") == "2"
    before = page.execute_script("return page.job.ranks.map(rank => rank.step)")
    cluster.wait("more steps of both", lambda: page.execute_script("return page.job.ranks.every((rank, i) => rank.step > arguments[0][i])", before))
    page.execute_script("document.querySelector('#ranks tbody button').click()")
    cluster.wait("the refusal of the log", lambda: "pods/log" in text(page, "#log-text"))


def test_the_page_shows_a_job_to_who_may_see_it_and_nothing_to_others(team, digits):
    job = digits(replicas=2, epochs=500, elastic={"minReplicas": 1})
    shell = Shell(team, NAME="viewer")
    shell.type("helm upgrade ringmaster charts/ringmaster --namespace ringmaster-system --reuse-values --set page.enabled=true")
    team.wait("the page's Service", lambda: is_served(team))
    job.wait_bootstrapped(2)
    may, may_not = shell.type("kubectl -n team create token NAME").strip(), team.kubectl("create", "token", "default").strip()
    with shell.goes_on() as terminal, chromium(any_certificate=True) as page:
        terminal.type(shell.command("kubectl -n ringmaster-system port-forward service/") + " &")
        team.wait("the port", lambda: terminal.line(r"^Forwarding from 127\.0\.0\.1:8443 "))
        page.get("https://localhost:8443")
        log_in(page, may_not)
        team.wait("a refusal", lambda: "system:serviceaccount:default:default may not get /page" in text(page, "#says"))
        log_in(page, may)
        team.wait("the same before there is a binding", lambda: "system:serviceaccount:team:viewer may not get /page" in text(page, "#says"))
        assert page.get_cookies() == [] and "digits" not in page.page_source

        shell.type("kubectl create clusterrolebinding team-sees-the-page --clusterrole ringmaster-system:ringmaster-operator:page --group")

        def is_let_in():  # a no is kept for five seconds
            if not page.find_elements(By.CSS_SELECTOR, "#jobs option") and page.find_elements(By.ID, "token"):
                log_in(page, may)
            return page.find_elements(By.CSS_SELECTOR, "#jobs option")
        team.wait("the list of jobs", is_let_in, period=2)
        sees_the_job_as_it_trains(team, page)


def test_what_a_sidecar_knows_is_told_to_curl(digits):
    job = digits(replicas=1, epochs=500, elastic={"minReplicas": 1})
    job.wait_bootstrapped(1)
    shell = Shell(job.cluster, JOB="digits", POD="digits-worker-0")
    with shell.goes_on() as terminal:
        terminal.type(shell.command("kubectl proxy &"))
        job.cluster.wait("the port", lambda: terminal.line(r"^Starting to serve on 127\.0\.0\.1:8001"))
        terminal.type(shell.command("TOKEN=$(printf"))
        terminal.type(shell.command('curl -H "Ringmaster-Token: $TOKEN" localhost:8001/') + "; echo")
        status = json.loads(job.cluster.wait("an answer", lambda: terminal.line(r"\{.*\}"))[0])
    assert status["pod"]["name"] == "digits-worker-0" and status["state"] == "Training" and status["workers"][0]["step"] > 0, status
    assert [worker["rank"] for worker in status["workers"]] == [0]
