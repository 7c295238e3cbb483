"""What a worker's script expects to fail."""


def expect(kind, call, says):
    """call() raises an error of this kind, whose message contains `says`."""
    try:
        call()
    except kind as error:
        assert says in str(error), (says, str(error))
        return
    raise AssertionError("%s was expected: %s" % (kind.__name__, says))
