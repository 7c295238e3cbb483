"""A function with its arguments as bytes, and back: by cloudpickle where it is installed, else by
pickle.
"""

import inspect
import pickle
import sys

from ringmaster.runner.errors import FunctionError

try:
    import cloudpickle as _pickler
    BY_VALUE = True  # functions of notebooks and scripts, lambdas and nested functions, too
except ImportError:
    _pickler = pickle
    BY_VALUE = False


def name_of(function):
    """What people call the function."""
    return getattr(function, "__name__", None) or type(function).__name__


def pack(function, args=(), kwargs=None, path=None):
    """The bytes of a call. `path`: folders in which its modules are found, before the worker's own.

    FunctionError names what can't be sent and the way out.
    """
    if not callable(function):
        raise FunctionError("%r is no function: give the function itself, and its arguments as "
                            "args and kwargs" % (function,))
    args, kwargs = tuple(args), dict(kwargs or {})
    if not BY_VALUE:
        _check_reachable(function)
    try:
        call = _pickler.dumps((function, args, kwargs))
    except Exception as error:
        raise FunctionError(_why(function, args, kwargs, error)) from error
    return pickle.dumps({"python": tuple(sys.version_info[:2]), "by_value": BY_VALUE,
                         "name": name_of(function), "path": list(path or ()), "call": call})


def unpack(data):
    """(function, args, kwargs) of what pack() made. FunctionError where this Python can't read it.
    """
    packed = pickle.loads(data)
    version = tuple(sys.version_info[:2])
    if packed["by_value"] and packed["python"] != version:
        raise FunctionError(
            "%s was sent by Python %d.%d, and the worker has %d.%d: a function travels as bytecode,"
            " so both must have the same version" % ((packed["name"],) + packed["python"]
                                                      + version))
    sys.path[:0] = [folder for folder in packed["path"] if folder not in sys.path]
    try:
        return pickle.loads(packed["call"])
    except ModuleNotFoundError as error:
        raise FunctionError(
            "%s needs the module %s, which the worker does not have: install it there, or put it "
            "beside the function's own file" % (packed["name"], error.name)) from error


def dump(value, what):
    """The bytes of a value; FunctionError, naming `what`, where it can't be sent."""
    try:
        return _pickler.dumps(value)
    except Exception as error:
        raise FunctionError("%s can't be sent back: it is a %s: %s. Return numbers, arrays or a "
                            "state_dict() instead" % (what, type(value).__name__, error)) from error


def _check_reachable(function):
    """Plain pickle sends a function's name alone: the worker must find it by that."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not inspect.isfunction(function):
        return
    if module == "__main__":
        why = "it stands in the script or notebook itself"
    elif "<" in name:
        why = "it is a lambda, or stands inside another function"
    else:
        return
    raise FunctionError(
        "%s can't be sent to the workers without the package cloudpickle: %s. `pip install "
        "cloudpickle`, or put it at the top level of a module and import it" %
        (name_of(function), why))


def _why(function, args, kwargs, error):
    """Which part of a call can't be pickled, by trying each alone."""
    parts = [("argument %d" % number, value) for number, value in enumerate(args)]
    parts += [("argument %s" % name, value) for name, value in kwargs.items()]
    for name, value in parts:
        if not _can_be_sent(value):
            return ("%s of %s can't be sent to the workers: it is a %s: %s. Make it inside the "
                    "function, from something plain" %
                    (name, name_of(function), type(value).__name__, error))
    for name, value in _outside_names(function):
        if not _can_be_sent(value):
            return ("%s can't be sent to the workers: it uses %s, which is a %s: %s. Make it inside"
                    " the function, or import it from a module" %
                    (name_of(function), name, type(value).__name__, error))
    return "%s can't be sent to the workers: %s" % (name_of(function), error)


def _outside_names(function):
    if not inspect.isfunction(function):
        return []
    try:
        used = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return []
    return [*used.nonlocals.items(), *used.globals.items()]


def _can_be_sent(value):
    try:
        _pickler.dumps(value)
        return True
    except Exception:
        return False
