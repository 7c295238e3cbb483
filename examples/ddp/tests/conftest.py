"""Finds the digits example's checker, and the fake sidecar of the Python package's tests."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, os.path.join(ROOT, "examples", "digits"))
sys.path.insert(0, os.path.join(ROOT, "collectives", "python", "tests"))
