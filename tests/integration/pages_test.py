"""The pages of docs/ that answer a question: their scripts run, their commands are typed, and what these print is what the page shows.

A ```python block whose first line is `# NAME.py` is that file, on other pages, too. In a ```console block what follows `$ ` is typed in the folder of
these files, but for what tests/docs/doc_commands.py has another test for; a line `...` stands for any lines, and numbers, times, folders and process ids may differ, but not ranks, slots and pods. A run
goes on in the background until the page begins another one. Other commands are repeated until they print what the page shows.
"""

import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

import harness
import optional
from harness import REPOSITORY, wait_for

sys.path.insert(0, str(REPOSITORY / "tests/docs"))
import doc_commands  # noqa: E402

PAGES = doc_commands.TYPED


def plain(line):
    """Without what differs from run to run."""
    line = re.sub(r"(\[|\bran\w+ |\bslots? |-worker-|\bnot by rank \d, )(\d)\b", lambda m: m[1] + "abcdefghij"[int(m[2])], line)
    line = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", line)
    line = re.sub(r"0x[0-9a-f]+", "ADDRESS", line)
    line = re.sub(r"(/[\w.-]+)+/(?=[\w.-])", "", line)  # the folder of a file
    line = re.sub(r"\b[0-9a-f]{4,}-\d+\b", "RUN", line)
    line = re.sub(r"\d+(\.\d+)?(e-?\d+)?", "N", line)
    line = re.sub(r"\bN[smhd]\b|\bN m?s\b", "DURATION", line)
    return re.sub(r"\s+", " ", line).strip()


def matches(shown, printed):
    """Whether the lines of the page, in which `...` are any, are those that were printed."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else re.escape(plain(line)) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(plain(line) + "\n" for line in printed)) is not None


def commands(page):
    """[(command, lines that the page shows)] of what is typed of a page, in order."""
    return [(command, shown) for command, shown in doc_commands.commands(doc_commands.page_file(page).read_text())
            if not doc_commands.rows_of(page, command)]


def scripts():
    """{name: text} of the files of all pages."""
    found = {}
    for page in PAGES:
        for name, script in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", doc_commands.page_file(page).read_text(), re.S):
            assert name not in found, "two pages have a " + name
            found[name] = "#\n" + script  # the line numbers are those of the page
    return found


class Terminal:
    """A run in the foreground of a terminal."""

    def __init__(self, command, cwd, env):
        self.lines = []
        self.process = subprocess.Popen(["bash", "-c", command], cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join(10)


PROGRESS = re.compile(r" +[\d.]+s  step \d")  # may come between any two lines


def check_run(command, shown, terminal):
    """What a run prints begins with what the page shows."""
    def there():
        lines = [line for line in list(terminal.lines) if not PROGRESS.match(line)]
        over = terminal.process.poll() is not None and not terminal.reader.is_alive()
        return any(matches(shown, lines[:end]) for end in range(len(lines) + 1)) or (over and "over")
    try:
        done = wait_for("what the page shows", there, 120)
    except AssertionError:
        done = None
    assert done is True, "$ %s\n%s\n---- the page:\n%s" % (command, "\n".join(terminal.lines), "\n".join(shown))


def check_command(command, shown, cwd, env):
    printed = []

    def there():
        done = subprocess.run(["bash", "-c", command], cwd=cwd, env=env, text=True, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        printed[:] = (done.stdout + done.stderr).splitlines()
        return done.returncode == 0 and matches(shown, printed)
    try:
        wait_for("what the page shows", there, 30)
    except AssertionError:
        raise AssertionError("$ %s\n%s\n---- the page:\n%s" % (command, "\n".join(printed), "\n".join(shown)))


def is_run(command):
    return re.match(r"(\w+=\S+ )*(ringmaster run|ringmaster bench|horovodrun|python3) ", command)


def environment(folder):
    env = harness.environment(OMP_NUM_THREADS="1", PYTHONPATH=str(harness.BIN.parent / "python"))
    found = glob.glob(os.path.expanduser("~/.cache/ringmaster/tensorflow-2.15.*/lib/python3.*/site-packages"))
    if found:  # TensorBoard, behind all that Debian has
        (folder / "site").mkdir()
        (folder / "site/sitecustomize.py").write_text("import sys\nsys.path.append(%r)\n" % found[0])
        env["PYTHONPATH"] += ":%s" % (folder / "site")
    return env


@pytest.mark.parametrize("page", PAGES)
def test_what_the_page_shows_is_what_happens(page, tmp_path):
    with tempfile.TemporaryDirectory(prefix="rm-") as runs:  # short, for sockets; the logs of runs that fail stay there
        check_page(page, tmp_path, dict(environment(tmp_path), RINGMASTER_RUNS=runs))


def check_page(page, tmp_path, env):
    if page == "tensorboard" and subprocess.run(["/usr/bin/python3", "-c", "import tensorboard"], env=env, capture_output=True).returncode:
        optional.cannot("TensorBoard is not there (hack/lib/tensorflow installs it): the page was NOT tried")
    for name, script in scripts().items():
        (tmp_path / name).write_text(script)
    terminal = None
    try:
        assert len(commands(page)) >= 1
        for command, shown in commands(page):
            if is_run(command):
                if terminal:
                    terminal.close()
                terminal = Terminal(command, tmp_path, env)
                check_run(command, shown, terminal)
            else:
                check_command(command, shown, tmp_path, env)
    finally:
        if terminal:
            terminal.close()


def test_the_comparison_sees_another_rank_another_word_and_a_line_too_many():
    page = ["branch: asked for by 2 ranks, not by rank 0 (branch-worker-0/0), since 2026-11-23T11:15:45Z (RanksMissing, for 4m)", "...", "end 3"]
    printed = ["branch: asked for by 2 ranks, not by rank 0 (branch-worker-0/0), since 2026-12-01T01:02:03Z (RanksMissing, for 12s)", "x", "end 77"]
    assert matches(page, printed)
    assert not matches(page, [printed[0].replace("rank 0", "rank 1"), *printed[1:]])
    assert not matches(page, [printed[0].replace("asked", "begged"), *printed[1:]])
    assert not matches(page, printed + ["more"])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
