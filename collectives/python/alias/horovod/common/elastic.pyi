from typing import Any, Callable

from ringmaster.elastic import ObjectState as ObjectState, State as State

def run_fn(func: Callable[..., Any], reset: Any) -> Callable[..., Any]: ...
