"""Compares a type stub with the module that it is of."""

import ast
import importlib
import inspect


def _declared_in(stub):
    """Functions as {name: names of arguments}, classes as {name: the same of methods}, names."""

    def functions_of(body):
        found = {}
        for node in body:
            if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                arguments = node.args
                every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
                found[node.name] = [argument.arg for argument in every]
        return found

    with open(stub) as file:
        body = ast.parse(file.read()).body
    classes = {
        node.name: functions_of(node.body)
        for node in body if isinstance(node, ast.ClassDef)
    }
    names = set(classes) | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}
    names |= {node.name for node in body if isinstance(node, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
    return functions_of(body), classes, names


def _arguments_of(function):
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind not in kinds]


def check(module, stub):
    """AssertionError where the stub lacks a public name, or its arguments are others."""
    functions, classes, names = _declared_in(stub)
    found = importlib.import_module(module)
    assert [name for name in getattr(found, "__all__", ()) if name not in names] == []
    for name, arguments in functions.items():
        assert _arguments_of(getattr(found, name)) == arguments, name
    for name in classes:
        for method, arguments in classes[name].items():
            if hasattr(found, name) and not method.startswith("__") or method == "__init__":
                assert _arguments_of(getattr(getattr(found, name),
                                             method)) == arguments, (name, method)
