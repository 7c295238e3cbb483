"""The page of `ringmaster ui`, in a real browser, on a real run that loses a worker."""

import re

from selenium.webdriver.common.by import By

import harness
from browser import chromium
from harness import Run, manifest, wait_for
from commands_test import Reader


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

                page.find_element(By.CSS_SELECTOR, "#ranks tbody button").click()
                wait_for("a log", lambda: "..." != text(page, "#log-text"))
                assert text(page, "#log-of").startswith("job-worker-")

                wait_for("the restarted worker", lambda: text(page, "#workers") == "3")
                (tmp_path / "absent.1").touch()  # the rank that the others wait for is named
                wait_for("the straggler", lambda: "The others wait for rank 1 (" in text(page, "#straggler"))
                (tmp_path / "absent.1").unlink()
                wait_for("it in the timeline", lambda: "Rank 1 (" in text(page, "#timeline-says") or stand_still(tmp_path / "absent.1", page))

                page.set_window_size(400, 900)
                wait_for("the narrow layout", lambda: page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"))
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


def test_whoever_lacks_the_token_sees_nothing(write, tmp_path):
    with Run(write(manifest(command=[str(harness.WORKER), str(tmp_path)], replicas=1))) as run:
        run.world("job", 1)
        with Reader("ui", "--run-dir", run.dir) as ui, chromium() as page:
            ui.has(r"^http")
            page.get(ui.lines[0].split("?")[0])
            assert text(page, "body") == "Open the address that the command has printed: it ends with ?token=..."
        (tmp_path / "stop").touch()
