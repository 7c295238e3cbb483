"""Compression of what travels: nothing, or half precision."""

import torch


class NoneCompressor:

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, _context):
        return tensor


class Fp16Compressor:
    """Floating-point tensors travel as fp16 and come back in their own type."""

    @staticmethod
    def compress(tensor):
        if tensor.dtype.is_floating_point:
            return tensor.to(torch.float16), tensor.dtype
        return tensor, None

    @staticmethod
    def decompress(tensor, dtype):
        return tensor if dtype is None else tensor.to(dtype)


class Compression:
    none = NoneCompressor
    fp16 = Fp16Compressor
