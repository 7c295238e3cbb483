"""PyTorch's CUDA for a PyTorch without it, over the fake of CUDA and NCCL: tensors that say they are on a GPU, whose memory is the
fake's device memory, and the few functions of torch.cuda that ringmaster.torch calls.

Import it before ringmaster.torch. What it can't show: kernels of PyTorch's that run later than they are called. Only hold() delays a
stream.
"""

import ctypes
import functools

import torch

DEVICE = torch.device("cuda", 0)
_cuda = ctypes.CDLL("libcudart.so.12")
for _name in ("cudaMalloc", "cudaMemcpyAsync"):
    getattr(_cuda, _name).argtypes = {"cudaMalloc": [ctypes.c_void_p, ctypes.c_size_t],
                                      "cudaMemcpyAsync": [ctypes.c_void_p, ctypes.c_void_p,
                                                          ctypes.c_size_t, ctypes.c_int,
                                                          ctypes.c_void_p]}[_name]
_blocks = {}  # address: length


def _call(name, *args):
    assert getattr(_cuda, name)(*args) == 0, name


def _is_device(tensor):
    at = tensor.data_ptr()
    return any(start <= at < start + length for start, length in _blocks.items())


class Tensor(torch.Tensor):
    """Its memory is the device's, and so is that of what is computed from it."""

    device = property(lambda self: DEVICE)
    is_cuda = property(lambda self: True)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") is not None:
            kwargs.pop("device")
        result = super().__torch_function__(function, types, args, kwargs)
        return _placed(result)

    def cpu(self):
        return self.as_subclass(torch.Tensor).clone()

    def __deepcopy__(self, memo):
        return to_device(self.cpu())

    def tolist(self):
        return self.cpu().tolist()


def _placed(result):
    if isinstance(result, (list, tuple)) and not hasattr(result, "_fields"):
        return type(result)(_placed(entry) for entry in result)
    if not isinstance(result, Tensor) or result.numel() == 0 or _is_device(result):
        return result
    if result.requires_grad or result.grad_fn is not None or not result.is_contiguous():
        return result  # never handed to the library as it is
    return to_device(result.as_subclass(torch.Tensor))


def to_device(tensor):
    """A copy in the device's memory."""
    tensor = tensor.detach().contiguous()
    length = max(1, tensor.numel() * tensor.element_size())
    address = ctypes.c_void_p()
    _call("cudaMalloc", ctypes.byref(address), length)
    _blocks[address.value] = length
    memory = torch.frombuffer((ctypes.c_ubyte * length).from_address(address.value), dtype=torch.uint8)
    placed = memory[:tensor.numel() * tensor.element_size()].view(tensor.dtype).view(tensor.shape)
    placed.copy_(tensor)
    return placed.as_subclass(Tensor)


class Parameter(torch.nn.Parameter):
    device = property(lambda self: DEVICE)


def parameters_to_device(module):
    for parameter in module.parameters():
        parameter.data = to_device(parameter.data).as_subclass(torch.Tensor)
        parameter.__class__ = Parameter
    return module


class Stream:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        _call("cudaStreamCreateWithPriority", ctypes.byref(self.handle), 0, 0)

    def hold(self):
        """What is given to it from now on waits until release()."""
        _cuda.fake_gpu_hold(self.handle)

    def write(self, tensor, source):
        """Copies in the order of the stream. `source` is on the device, too: the call does not wait."""
        _call("cudaMemcpyAsync", tensor.data_ptr(), source.data_ptr(),
              tensor.numel() * tensor.element_size(), 4, self.handle)


def release():
    _cuda.fake_gpu_release()


class Event:
    recorded = 0

    def __init__(self):
        handle = ctypes.c_void_p()
        _call("cudaEventCreateWithFlags", ctypes.byref(handle), 2)
        self.cuda_event = handle.value

    def record(self, stream):
        Event.recorded += 1
        _call("cudaEventRecord", ctypes.c_void_p(self.cuda_event), stream.handle)

    def synchronize(self):
        while _cuda.cudaEventQuery(ctypes.c_void_p(self.cuda_event)) == 600:
            pass

    def __del__(self):
        _cuda.cudaEventDestroy(ctypes.c_void_p(self.cuda_event))


stream = Stream()
torch.cuda.Event = Event
torch.cuda.current_stream = lambda device=None: stream
capturing = False
torch.cuda.is_current_stream_capturing = lambda: capturing
torch.cuda.current_device = lambda: 0


def _on_device(function):
    @functools.wraps(function)
    def made(*args, device=None, **kwargs):
        if device is None or torch.device(device).type == "cpu":
            return function(*args, **kwargs) if device is None else function(*args, device=device,
                                                                             **kwargs)
        if hasattr(args[0], "__cuda_array_interface__") and not isinstance(args[0], torch.Tensor):
            facts = args[0].__cuda_array_interface__
            memory = (ctypes.c_ubyte * facts["shape"][0]).from_address(facts["data"][0])
            return torch.frombuffer(memory, dtype=torch.uint8).as_subclass(Tensor)
        return to_device(function(*args, **kwargs))
    return made


for _name in ("empty", "zeros", "tensor", "as_tensor"):
    setattr(torch, _name, _on_device(getattr(torch, _name)))
