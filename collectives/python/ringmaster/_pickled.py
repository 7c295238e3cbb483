"""Objects as bytes for other workers. Where a worker has no object to send the bytes say why, so
that nobody waits for it.
"""

import pickle

_DEEPEST = 8  # into dictionaries, one of which may hold itself


class Failure:
    """Is sent in the place of an object."""

    def __init__(self, text):
        self.text = text


def made(make, who):
    """(what make() gives, its pickle, None). If there is none: (None, the pickle of a Failure, the
    error that this worker is to raise once it has sent that). who(): what others call it.
    """
    try:
        obj = make()
    except SystemExit:
        raise  # this worker ends, or the others go on without it
    except Exception as error:
        return None, _failure(_words(who, "make what it was to send", error)), error
    try:
        return obj, pickle.dumps(obj, protocol=5), None
    except Exception as error:
        text = _words(who, "pickle its object%s, a %s" % _culprit(obj), error)
        refused = ValueError(text)
        refused.__cause__ = error
        return None, _failure(text), refused


def _culprit(obj):
    """(where in nested dictionaries, such as a state's, the first value is that can't be pickled,
    the name of its type).
    """
    path = ""
    for _ in range(_DEEPEST):
        if not isinstance(obj, dict):
            break
        key = next((key for key, value in obj.items() if not _can_be_pickled(value)), None)
        if key is None:
            break
        path, obj = "%s[%r]" % (path, key), obj[key]
    return path, type(obj).__name__


def _can_be_pickled(value):
    try:
        pickle.dumps(value, protocol=5)
        return True
    except Exception:
        return False


def _words(who, what, error):
    return "%s could not %s: %s: %s" % (who(), what, type(error).__name__, error)


def _failure(text):
    return pickle.dumps(Failure(text), protocol=5)
