"""The checker finds what it is there for: each kind of damage is done to a good log and must be
found.
"""

import json
import os
import random
import subprocess
import sys

import pytest
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import check  # noqa: E402
import digits  # noqa: E402

EPOCHS = 2


class Story:
    """A run of its own making, by plain PyTorch: four workers; w2 dies in step 9 before its part is
    in,
    w5 comes with step 20, w3 is drained in step 30 with its part in. lines[worker] is its log."""

    def __init__(self):
        self.lines = {}
        self._data = digits.Digits()
        self._model = digits.make_model()
        self._optimizer = digits.make_optimizer(self._model)
        workers, step = ["w0", "w1", "w2", "w3"], 0
        for epoch in range(EPOCHS):
            pool = list(range(len(self._data)))
            random.Random(epoch).shuffle(pool)
            while pool:
                step += 1
                if step == 20:
                    workers.append("w5")
                window = pool[:digits.GLOBAL_BATCH]
                counted = self._step(step, epoch, workers, window)
                pool = [sample for sample in pool if sample not in counted]
                workers = [w for w in workers if (w, step) not in (("w2", 9), ("w3", 30))]
            accuracy = digits.accuracy_of(self._model, self._data)
            self.lines["w0"].append({"epoch_end": epoch, "step": step, "accuracy": accuracy})

    def _step(self, step, epoch, workers, window):
        size = len(workers)
        shares = {w: window[len(window) * r // size:len(window) * (r + 1) // size]
                  for r, w in enumerate(workers)}
        if step == 9:
            shares["w2"] = []
        counted = [sample for share in shares.values() for sample in share]
        losses = {w: digits.loss_of(self._model, self._data, s).item() for w, s in shares.items()}
        self._optimizer.zero_grad()
        digits.loss_of(self._model, self._data, counted).backward()
        self._optimizer.step()
        for rank, worker in enumerate(workers):
            if (worker, step) not in (("w2", 9), ("w3", 30)):
                self.lines.setdefault(worker, []).append({
                    "step": step, "view": 1, "rank": rank, "size": size, "epoch": epoch,
                    "samples": shares[worker], "counted": counted, "loss": losses[worker],
                    "params": digits.hash_of(self._model), "t": 0})
        return set(counted)


@pytest.fixture(scope="module")
def story():
    torch.set_num_threads(1)
    return Story().lines


@pytest.fixture(scope="module", autouse=True)
def one_reference():
    value = digits.reference_accuracy(EPOCHS)
    original, digits.reference_accuracy = digits.reference_accuracy, lambda epochs, data: value
    yield
    digits.reference_accuracy = original


@pytest.fixture
def damaged(story, tmp_path):
    """Copies the good log, lets a function damage the lines, and returns the verdict."""

    def judge(damage=None):
        lines = json.loads(json.dumps(story))
        if damage:
            damage(lines)
        for worker, entries in lines.items():
            with open(tmp_path / (worker + ".jsonl"), "w") as file:
                file.writelines(json.dumps(entry) + "\n" for entry in entries)
        return check.judge(str(tmp_path))

    return judge


def of_step(lines, step):
    return [line for entries in lines.values() for line in entries
            if line.get("step") == step and "epoch_end" not in line]


def test_AGoodRunWithADeathAJoinAndADrainIsGood(damaged):
    verdict = damaged()
    assert verdict["findings"] == {} and verdict["ok"]
    assert verdict["worldSizes"] == [4, 3, 4, 3] and verdict["stepsLost"] == 0


def test_AStepThatNobodyHasIsFound(damaged):
    def lose(lines):
        for entries in lines.values():
            entries[:] = [line for line in entries if line.get("step") != 12]

    assert any("step 12" in text for text in damaged(lose)["findings"]["lost step"])


def test_AStepWhoseUpdateWasLostIsFoundByTheReplayAlthoughEveryLineIsThere(damaged, story):
    """Training went on from the state before step 12: the losses from 13 on are of other
    parameters.
    """
    def lose(lines):
        data, model = digits.Digits(), digits.make_model()
        optimizer = digits.make_optimizer(model)
        for step in range(1, 14):
            for line in of_step(lines, step):
                if step == 13 and line["samples"]:
                    line["loss"] = digits.loss_of(model, data, line["samples"]).item()
            if step != 12:
                optimizer.zero_grad()
                digits.loss_of(model, data, of_step(lines, step)[0]["counted"]).backward()
                optimizer.step()

    assert any("step 13" in text for text in damaged(lose)["findings"]["replay"])


def test_AWorkerThatMissesAStepIsFound(damaged):
    def lose(lines):
        lines["w1"] = [line for line in lines["w1"] if line["step"] != 5]

    assert any("w1" in text for text in damaged(lose)["findings"]["lost step"])


def test_AWorkerThatWasOutOfAViewByMistakeMayMissItsSteps(damaged):
    def come_back(lines):
        lines["w1"] = [line for line in lines["w1"] if line["step"] not in (5, 6)]
        for line in (line for entries in lines.values() for line in entries if "size" in line):
            line["view"] += (line["step"] >= 6) + (line["step"] >= 7)
            line["size"] -= line["step"] == 6  # in step 5 it was dropped on the way

    assert not damaged(come_back)["findings"].get("lost step")


def test_AWorkerThatWasOutOfAViewByMistakeInTheFirstStepMayMissIt(damaged):
    """It comes back with step 7, two views later; in step 1 it was dropped on the way."""
    def come_back_in_view(view):
        def damage(lines):
            lines["w1"] = [line for line in lines["w1"] if line["step"] >= 7]
            for line in (line for entries in lines.values() for line in entries if "size" in line):
                line["view"] += (line["step"] >= 2) + (line["step"] >= 7) * (view - 2)
                line["size"] -= 2 <= line["step"] <= 6
        return damage

    assert not damaged(come_back_in_view(3))["findings"].get("lost step")
    assert any("step 1:" in text
               for text in damaged(come_back_in_view(2))["findings"]["lost step"])


def test_AWorkerThatCameBackAndLeftInItsFirstStepMissesThatOneOnly(damaged):
    """w2's last line is that of step 8; it is let in again in view 3 and leaves before its first."""
    def come_back_in(*steps):
        def damage(lines):
            for step in steps:
                for line in of_step(lines, step):
                    line["size"], line["view"] = 5, 3
        return damage

    assert damaged(come_back_in(25))["findings"] == {}
    assert any("step 26" in text for text in damaged(come_back_in(25, 26))["findings"]["lost step"])


def test_AStepBackIsFoundInWhateverView(damaged):
    def repeat(lines):
        again = dict(lines["w1"][3], view=lines["w1"][3]["view"] + 7)
        lines["w1"] = lines["w1"][:6] + [again]

    assert any("w1" in text for text in damaged(repeat)["findings"]["lost step"])


def test_AFlippedBitIsFound(damaged):
    def flip(lines):
        line = lines["w1"][6]
        line["params"] = "%x" % (int(line["params"], 16) ^ 1)

    assert any("step 7" in text and "w1" in text for text in damaged(flip)["findings"]["diverged"])


def test_AJoinerThatDivergesInItsFirstStepIsFound(damaged):
    def diverge(lines):
        lines["w5"][0]["params"] = "0" * 64

    assert any("step 20" in text and "w5" in text
               for text in damaged(diverge)["findings"]["diverged"])


def test_ASkippedBatchIsFound(damaged):
    def skip(lines):
        for line in of_step(lines, 15):
            line["samples"], line["counted"] = [], []

    assert any("skipped" in text for text in damaged(skip)["findings"]["samples"])


def test_ASampleUsedTwiceIsFound(damaged):
    def repeat(lines):
        again = of_step(lines, 14)[0]["samples"][0]
        for line in of_step(lines, 15):
            line["counted"].append(again)

    assert any("used twice" in text for text in damaged(repeat)["findings"]["samples"])


def test_ASampleThatTwoWorkersTookInOneStepIsFound(damaged):
    def share(lines):
        first, second = of_step(lines, 15)[:2]
        second["samples"].append(first["samples"][0])

    assert "samples" in damaged(share)["findings"]


def test_ALostContributionIsFoundByTheReplay(damaged):
    """The log says that all counted, but the gradient had not one worker's part: losses differ."""
    def pretend(lines):
        for step in range(16, 20):
            for line in of_step(lines, step):
                line["loss"] += 1e-4

    assert any("step 16" in text for text in damaged(pretend)["findings"]["replay"])


def test_ALossThatIsNotANumberIsFound(damaged):
    def poison(lines):
        lines["w0"][3]["loss"] = float("nan")

    assert "replay" in damaged(poison)["findings"]


def test_AnAccuracyMoreThanAPointOffIsFound(damaged):
    def worsen(lines):
        for line in lines["w0"]:
            if "epoch_end" in line:
                line["accuracy"] -= 0.05

    assert "accuracy" in damaged(worsen)["findings"]


def test_AWorkerThatIsMissingFromAStepWithoutHavingLeftIsFound(damaged):
    def remove(lines):
        del lines["w1"]

    assert "lost step" in damaged(remove)["findings"] or "samples" in damaged(remove)["findings"]


def test_AnEmptyFolderIsNotAGoodRun(tmp_path):
    assert not check.judge(str(tmp_path))["ok"]


def test_TheCommandsExitStatusSaysIt(story, damaged, tmp_path):
    damaged()
    command = [sys.executable, os.path.join(os.path.dirname(HERE), "check.py")]
    good = subprocess.run(command + [str(tmp_path), "--json"], capture_output=True, text=True,
                          timeout=120)
    assert good.returncode == 0 and json.loads(good.stdout)["ok"], good.stderr
    os.remove(tmp_path / "w1.jsonl")
    bad = subprocess.run(command + [str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 1 and "FOUND" in bad.stdout
    usage = subprocess.run(command + [str(tmp_path / "none")], capture_output=True, text=True,
                           timeout=120)
    assert usage.returncode == 2 and "is not a folder" in usage.stderr
