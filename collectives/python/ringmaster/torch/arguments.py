"""Checks of arguments that several functions take."""


def check_has_state(name, value, kind):
    """ValueError unless state_dict() and load_state_dict() can be called on it: all that is asked
    of modules and optimizers that are to be sent, also of those that are not torch's own.
    """
    if isinstance(value, type) or not (callable(getattr(value, "state_dict", None)) and
                                       callable(getattr(value, "load_state_dict", None))):
        found = "the class %s" % value.__name__ if isinstance(value, type) else \
            "a %s" % type(value).__name__
        raise ValueError("%s: is %s, must be %s, with state_dict() and load_state_dict()"
                         % (name, found, kind))
