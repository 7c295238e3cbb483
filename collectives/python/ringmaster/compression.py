"""What compressions of all frameworks have in common."""

__all__ = ["Compressor", "NoneCompressor"]


class Compressor:
    """What a compression of the script's own derives from."""

    @staticmethod
    def compress(tensor):
        """(what travels, what decompress() needs to know)."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        """The reduced tensor in its own type. `ctx`: what compress() returned second."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Tensors travel as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor
