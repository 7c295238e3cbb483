"""Batch normalisation with the mean and variance of all ranks' batches."""

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ringmaster import _core
from ringmaster.reductions import Sum
from ringmaster.torch.operations import allreduce

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(_BatchNorm):
    """In training as torch.nn.BatchNorm1d and its like, over the samples of all ranks; else the
    same as they.

    Arguments, parameters and buffers are theirs: SyncBatchNorm(num_features, eps=1e-5,
    momentum=0.1, affine=True, track_running_stats=True). Input: (samples, num_features, ...) on the
    CPU or on a GPU, at least two dimensions (ValueError). Ranks may have different numbers of
    samples, also none; together they need more than one value for each feature (ValueError on all
    ranks). The gradient flows through the statistics, too.
    """

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError("input: has %d dimension(s), must have 2 or more" % input.dim())

    def forward(self, input):
        self._check_input_dim(input)
        synchronized = self.training or not self.track_running_stats
        if not synchronized or not _core.is_initialized() or _core.size() == 1:
            return self._forward_alone(input)
        exact = torch.promote_types(input.dtype, torch.float32)
        values = input.to(exact)
        over = [dim for dim in range(input.dim()) if dim != 1]
        count, mean = _totals(values.sum(over), values)
        centered = values - _along_features(mean, values)
        _, variance = _totals(centered.pow(2).sum(over), values)
        if count <= 1:
            raise ValueError("input: all ranks together have %d value(s) for each feature, "
                             "training needs 2 or more" % count)
        if self.training and self.track_running_stats:
            self._update_running(mean.detach(), variance.detach() * (count / (count - 1)))
        result = centered * _along_features(torch.rsqrt(variance + self.eps), values)
        if self.affine:
            result = result * _along_features(self.weight.to(exact), values) + \
                _along_features(self.bias.to(exact), values)
        return result.to(input.dtype)

    def _forward_alone(self, input):
        running = (self.running_mean, self.running_var) if self.track_running_stats else (None,
                                                                                          None)
        training = self.training or not self.track_running_stats
        factor = 0.0
        if self.training and self.track_running_stats:
            factor = self._next_factor()
        return torch.nn.functional.batch_norm(input, *running, self.weight, self.bias, training,
                                              factor, self.eps)

    def _next_factor(self):
        self.num_batches_tracked += 1
        if self.momentum is None:  # the mean over all batches
            return 1.0 / float(self.num_batches_tracked)
        return self.momentum

    def _update_running(self, mean, variance):
        factor = self._next_factor()
        for running, new in ((self.running_mean, mean), (self.running_var, variance)):
            running.mul_(1 - factor).add_(new.to(running.dtype), alpha=factor)


def _totals(sums, values):
    """(values of all ranks for each feature, mean over them): count and sum travel together, so
    that a rank that dies is in both or in neither.
    """
    own = values.numel() // max(1, values.shape[1])
    packed = torch.cat([sums, sums.new_tensor([float(own)])])
    total = allreduce(packed, op=Sum)
    count = int(total[-1].item())
    return count, total[:-1] / max(1, count)


def _along_features(vector, values):
    return vector.reshape([1, -1] + [1] * (values.dim() - 2))
