"""A call as the data of a Kubernetes Secret: the function, its arguments, the modules beside it."""

import base64
import os
import sys

from ringmaster.runner import function, modules
from ringmaster.runner.errors import FunctionError

MOST_BYTES = 1 << 20  # what Kubernetes allows in a Secret, all its entries together
CALL, MODULES, PICKLER = "call", "modules.zip", "cloudpickle.zip"


def data_of(func, kwargs):
    """{entry: bytes}. FunctionError where it is more than a Secret holds, with the sizes."""
    data = {CALL: function.pack(func, (), kwargs)}
    sizes = {"the function with its arguments": len(data[CALL])}
    folder = modules.folder_of(func)
    if folder:
        try:
            data[MODULES], of_files = modules.zipped(modules.files_in(folder))
        except MemoryError as error:
            raise _too_much(func, str(error))
        sizes.update(of_files)
    if function.BY_VALUE:
        # The worker needs it to read the call; where its image has one, that is taken.
        import cloudpickle
        package = os.path.dirname(os.path.abspath(cloudpickle.__file__))
        files = modules.package_files(os.path.dirname(package), package)
        data[PICKLER], _ = modules.zipped(files)
    total = sum(map(len, data.values()))
    if total > MOST_BYTES:
        largest = sorted(sizes.items(), key=lambda item: -item[1])[:3]
        raise _too_much(func, "%d bytes; the largest: %s" %
                        (total, ", ".join("%s (%d)" % item for item in largest)))
    return data


def _too_much(func, what):
    return FunctionError(
        "%s and the modules beside it can't be sent, they are too much for a Secret (%d bytes): "
        "%s. Put data on a volume, modules into the image, and launch from a folder that has only "
        "what is needed" % (function.name_of(func), MOST_BYTES, what))


def manifest(name, data, owner):
    """The Secret. It goes when its owner, the HorovodJob, goes."""
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": encoded,
            "metadata": {"name": name, "ownerReferences": [{
                "apiVersion": owner["apiVersion"], "kind": owner["kind"],
                "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]}}


def read(folder):
    """In the worker: the packed call; the modules can be imported from then on."""
    for entry, put in ((MODULES, lambda path: sys.path.insert(0, path)),
                       (PICKLER, sys.path.append)):
        path = os.path.join(folder, entry)
        if os.path.exists(path):
            put(path)
    with open(os.path.join(folder, CALL), "rb") as file:
        return file.read()
