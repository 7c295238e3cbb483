"""Whole numbers among the arguments that scripts give."""

import operator


def whole(value):
    """`value` as an int if it is a whole number, also one of numpy's; else None.

    True and False are none: where a number is wanted they are a mistake.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
