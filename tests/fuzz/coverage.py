"""Which lines of the parsers the inputs of tests/fuzz/corpus reach.

usage: coverage.py BUILD_DIR TARGET...    (hack/fuzz --coverage builds and calls it)

BUILD_DIR holds the fuzzers of the preset fuzz-coverage. tests/fuzz/parsers says which files count for a target. Prints a
line for each file, with the lines that nothing has reached, and one for each target. Exit status 1: a target is below 90 %.
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST = 90  # per cent
CODE = 0  # the kind of a region


def llvm(tool):
    """The tool of the compiler's version: another one can't read its files."""
    return shutil.which(tool + "-14") or shutil.which(tool) or sys.exit(f"{tool}-14 is missing: apt-get install llvm-14")


def parsers():
    """By target: the files that count, each with a pattern of the functions that do; None: all."""
    wanted = collections.defaultdict(dict)
    for line in (ROOT / "tests/fuzz/parsers").read_text().splitlines():
        if line and not line.startswith("#"):
            target, file, *rest = line.split(maxsplit=2)
            wanted[target][file] = rest[0] if rest else None
    return wanted


def functions_reached(build, target):
    """Runs the corpus, and gives the functions with their regions and how often each was reached."""
    program, raw = build / "bin" / f"fuzz_{target}", build / f"{target}.profraw"
    corpus = ROOT / "tests/fuzz/corpus" / target
    subprocess.run([program, "-runs=0", corpus], check=True, stderr=subprocess.DEVNULL, env={"LLVM_PROFILE_FILE": str(raw)})
    merged = raw.with_suffix(".profdata")
    subprocess.run([llvm("llvm-profdata"), "merge", "-sparse", raw, "-o", merged], check=True)
    exported = subprocess.run([llvm("llvm-cov"), "export", program, f"-instr-profile={merged}"], check=True, capture_output=True)
    return json.loads(exported.stdout)["data"][0]["functions"]


def paint(lines, regions):
    """A region inside another one has its own count; a line that both have is reached with either."""
    own = {}
    for first, _, last, _, count in sorted(regions, key=lambda region: (region[0], region[1], -region[2], -region[3])):
        own[first] = own.get(first, False) or count > 0
        own.update({line: count > 0 for line in range(first + 1, last + 1)})
    for line, reached in own.items():
        lines[line] = lines.get(line, False) or reached


def lines_reached(functions, file, only):
    """By line of the file: whether it was reached. Templates and lambdas are functions of their own."""
    lines = {}
    for function in functions:
        if not any(name.endswith("/" + file) for name in function["filenames"][:1]):
            continue
        if only and not re.search(only, function["name"]):
            continue
        paint(lines, [region[:5] for region in function["regions"] if region[7] == CODE and region[5] == 0])
    return lines


def ranges(numbers):
    """[1, 2, 3, 7] as "1-3 7"."""
    spans = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def report(build, target, files):
    """Prints the target's lines. Returns the per cent that were reached."""
    functions = functions_reached(build, target)
    all_lines = all_reached = 0
    for file, only in files.items():
        lines = lines_reached(functions, file, only)
        missed = sorted(line for line, reached in lines.items() if not reached)
        all_lines += len(lines)
        all_reached += len(lines) - len(missed)
        print(f"  {file}: {len(lines) - len(missed)} of {len(lines)}" + (f", not {ranges(missed)}" if missed else ""))
    share = 100 * all_reached / all_lines if all_lines else 0
    print(f"{target}: {all_reached} of {all_lines} lines, {share:.1f} %" + ("" if share >= LEAST else f", below {LEAST} %"))
    return share


def main():
    build, wanted = pathlib.Path(sys.argv[1]).resolve(), parsers()
    shares = [report(build, target, wanted[target]) for target in sys.argv[2:]]
    sys.exit(0 if all(share >= LEAST for share in shares) else 1)


if __name__ == "__main__":
    main()
