"""Checks the arguments of DistributedOptimizer: a ValueError says which is wrong, and what is
allowed.
"""

import math
import warnings

import torch

from ringmaster.process_sets import ProcessSet
from ringmaster.reductions import OPS, Adasum, Average, Sum, choose_op
from ringmaster.torch.original import KeepsOriginal
from ringmaster.torch.tensors import DEVICES


def check(optimizer, named_parameters, backward_passes_per_step, op, gradient_predivide_factor,
          sampler, process_set):
    """All but the groups."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError("optimizer: is a %s, must be a torch.optim.Optimizer"
                         % type(optimizer).__name__)
    if isinstance(optimizer, KeepsOriginal):
        raise ValueError("optimizer: is a DistributedOptimizer already")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("optimizer: LBFGS evaluates its closure many times in a step, which "
                         "can't be reduced once")
    if choose_op(op) not in (Average, Sum, Adasum):
        raise ValueError("op: is %s, must be Average, Sum or Adasum" % OPS[op])
    if op == Adasum and sampler is not None:
        raise ValueError("sampler: has no part in Adasum, which combines updates and no means: "
                         "leave it to the state (TorchState(sampler=...))")
    if int(backward_passes_per_step) < 1:
        raise ValueError("backward_passes_per_step: is %r, must be 1 or more"
                         % (backward_passes_per_step,))
    if not (gradient_predivide_factor > 0 and math.isfinite(gradient_predivide_factor)):
        raise ValueError("gradient_predivide_factor: is %r, must be finite and above 0"
                         % (gradient_predivide_factor,))
    if gradient_predivide_factor != 1.0 and op != Average:
        raise ValueError("gradient_predivide_factor: is %r, must be 1.0 unless op is Average"
                         % (gradient_predivide_factor,))
    if not isinstance(process_set, ProcessSet):
        raise ValueError("process_set: is a %s, must be a ProcessSet" % type(process_set).__name__)
    if sampler is not None and process_set.process_set_id != 0:
        raise ValueError("sampler: divides the samples between all ranks, so process_set must be "
                         "global_process_set")
    _check_names(named_parameters, parameters_of(optimizer))
    _check_devices(parameters_of(optimizer))


def parameters_of(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _check_devices(parameters):
    for parameter in parameters:
        if parameter.device.type not in DEVICES:
            raise ValueError("parameters: one is on %s, must be on the CPU or on a GPU of CUDA"
                             % parameter.device)
    gpus = sorted({str(parameter.device) for parameter in parameters
                   if parameter.device.type != "cpu"})
    if len(gpus) > 1:
        raise ValueError("parameters: they are on %s, must be on one GPU: a worker uses one"
                         % " and ".join(gpus))


def _check_names(named_parameters, parameters):
    if named_parameters is None:
        return
    named = list(named_parameters)
    if not all(isinstance(entry, tuple) and len(entry) == 2 for entry in named):
        raise ValueError("named_parameters: must be pairs of name and parameter, such as "
                         "model.named_parameters() gives")
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError("named_parameters: %s occur(s) more than once" % ", ".join(twice))
    known = {id(parameter) for _, parameter in named}
    unnamed = sum(1 for parameter in parameters if id(parameter) not in known)
    if unnamed:
        raise ValueError("named_parameters: %d parameter(s) of the optimizer have no name"
                         % unnamed)


def lists_of_groups(num_groups, groups, parameters):
    """`groups` as lists of parameters of `parameters`; a number n is n lists in their order."""
    if num_groups:
        warnings.warn("num_groups: is Horovod's older name for groups", DeprecationWarning,
                      stacklevel=3)
        groups = num_groups if groups is None else groups
    if groups is None:
        return []
    if isinstance(groups, int) and not isinstance(groups, bool):
        return _split(parameters, groups)
    if not isinstance(groups, (list, tuple)) or \
            not all(isinstance(group, (list, tuple)) for group in groups):
        raise ValueError("groups: is %r, must be a number or a list of lists of parameters"
                         % (groups,))
    return _known(groups, parameters)


def _split(parameters, count):
    if count < 0:
        raise ValueError("groups: is %d, must be 0 or more, or a list of lists of parameters"
                         % count)
    ends = [len(parameters) * number // count for number in range(count + 1)] if count else []
    parts = [parameters[begin:end] for begin, end in zip(ends, ends[1:])]
    return [part for part in parts if part]


def _known(groups, parameters):
    left = set(parameters)
    frozen_or_foreign = 0
    result = []
    for group in groups:
        if not all(isinstance(parameter, torch.Tensor) for parameter in group):
            raise ValueError("groups: has entries that are no tensors")
        mine = [parameter for parameter in group if parameter in left]
        frozen_or_foreign += sum(1 for parameter in group
                                 if parameter not in left and parameter.requires_grad)
        left.difference_update(mine)
        if mine:
            result.append(mine)
    if frozen_or_foreign:
        raise ValueError("groups: %d parameter(s) stand there twice, or are not the optimizer's"
                         % frozen_or_foreign)
    return result
