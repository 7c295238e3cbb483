"""What a step's gradients cost through each framework: 50 tensors, 10 MB, 2 workers, the same collectives below.

    PYTHONPATH=build/release/python python3 tests/bench/gradients.py

Compares PyTorch (this interpreter's) with every TensorFlow that hack/lib/tensorflow has made. Times are medians over steps, in ms; the
last column is the ratio to PyTorch's. `gradients` alone reduce nothing: what is above them in `gradients, reduced` is ours.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

PROJECT = pathlib.Path(__file__).resolve().parents[2]
CACHE = os.environ.get("RINGMASTER_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ringmaster")
COUNT, LENGTH = 50, 50_000  # float32: 10 MB in all


def median_ms(step, steps):
    for _ in range(steps // 5):
        step()
    taken = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        taken.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(taken)


def torch_steps():
    import ringmaster.torch as rm
    import torch
    torch.set_num_threads(1)
    rm.init()
    tensors = [torch.full((LENGTH,), float(i)) for i in range(COUNT)]
    yield "allreduce of the list", "", lambda: rm.grouped_allreduce(tensors, name="g")
    parameters = [torch.nn.Parameter(tensor.clone()) for tensor in tensors]
    optimizer = torch.optim.SGD(parameters, lr=0.0)

    def step():
        optimizer.zero_grad()
        sum(parameter.sum() for parameter in parameters).backward()

    def reduced():
        step()
        optimizer.synchronize()

    yield "gradients", "", step
    optimizer = rm.DistributedOptimizer(optimizer, end_step=False)
    yield "gradients, reduced", "DistributedOptimizer", reduced


def tensorflow_steps():
    import ringmaster.tensorflow as rm
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    rm.init()
    tensors = [tf.fill((LENGTH,), float(i)) for i in range(COUNT)]
    variables = [tf.Variable(tensor) for tensor in tensors]
    in_graph = tf.function(lambda *given: rm.grouped_allreduce(given, name="g"))
    yield "allreduce of the list", "eager", lambda: rm.grouped_allreduce(tensors, name="g")
    yield "allreduce of the list", "tf.function", lambda: in_graph(*tensors)

    def step(wrap=lambda tape: tape):
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_sum(variable) for variable in variables])
        return wrap(tape).gradient(loss, variables)

    def reduced():
        return step(rm.DistributedGradientTape)

    yield "gradients", "eager", step
    yield "gradients, reduced", "eager", reduced
    yield "gradients", "tf.function", tf.function(step)
    yield "gradients, reduced", "tf.function", tf.function(reduced)


def work(framework, steps):
    for what, how, step in (torch_steps if framework == "torch" else tensorflow_steps)():
        print("RESULT " + json.dumps([what, how, median_ms(step, steps)]), flush=True)
    import ringmaster
    ringmaster.shutdown()


def measured(python, framework, steps, environ):
    sys.path.insert(0, str(PROJECT / "collectives" / "python" / "tests"))
    from fake_sidecar import Job
    with tempfile.TemporaryDirectory(prefix="rm-", dir="/tmp") as folder:
        command = [os.path.abspath(__file__), "--work", framework, "--steps", str(steps)]
        with Job(folder, command, 2, environ, python=python) as job:
            codes = job.wait()
            if set(codes.values()) != {0}:
                sys.exit(job.logs())
            rank0 = job.logs().partition("--- slot 1")[0]
    return [json.loads(line) for line in re.findall(r"^RESULT (.*)$", rank0, re.M)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given.work, given.steps)
    packages = os.environ["PYTHONPATH"]
    of_torch = {}
    for what, how, taken in measured(None, "torch", given.steps, {}):
        of_torch[what] = taken
        show("PyTorch", what, how, taken, 1.0)
    for folder in sorted(pathlib.Path(CACHE).glob("tensorflow-*/made-of")):
        found = measured(str(folder.parent / "bin" / "python"), "tensorflow", given.steps,
                         {"PYTHONPATH": packages, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""})
        version = folder.parent.name.partition("-")[2]
        for what, how, taken in found:
            show("TensorFlow " + version, what, how, taken, taken / of_torch[what])


def show(framework, what, how, taken, ratio):
    print("| %-18s | %-22s | %-20s | %6.1f | %4.2f |" % (framework, what, how, taken, ratio))


if __name__ == "__main__":
    main()
