"""The type stubs of the modules that need TensorFlow."""

import os
import sys

import ringmaster

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import stubs  # noqa: E402

PACKAGE = os.path.dirname(ringmaster.__file__)
for module, stub in [("ringmaster.tensorflow", "tensorflow/__init__.pyi"),
                     ("ringmaster.tensorflow.elastic", "tensorflow/elastic.pyi"),
                     ("ringmaster.keras", "keras/__init__.pyi"),
                     ("ringmaster.keras.callbacks", "keras/callbacks.pyi"),
                     ("ringmaster.keras.elastic", "keras/elastic.pyi")]:
    stubs.check(module, os.path.join(PACKAGE, stub))
