"""How tensors of several ranks become one: Horovod's names and numbers for it."""

Sum, Average, Min, Max, Product, Adasum = range(6)
OPS = {Sum: "Sum", Average: "Average", Min: "Min", Max: "Max", Product: "Product",
       Adasum: "Adasum"}


def choose_op(op, average=None):
    """The reduction that is asked for. `average` is Horovod's older way to say so."""
    if op is not None and average is not None:
        raise ValueError("average, op: both were given; op replaces average")
    if op is None:
        op = Average if average is None or average else Sum
    if op not in OPS:
        raise ValueError("op: is %r, must be one of %s" % (op, ", ".join(OPS.values())))
    return op
