// The CUDA runtime as NcclBackend uses it: the real library (real_cuda.h), or a fake
// (fake/fake_gpu.h).
//
// Each method is the function of the runtime with this name, and has its rules. Nothing here may
// wait for the device without a deadline: so there is no synchronize, and Free() is called only
// where nothing runs.
//
// Thread rule: any thread; the device is the calling thread's.
#pragma once

#include <cstddef>
#include <string>

namespace ringmaster::nccl {

using CudaResult = int;
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaMemoryAllocation = 2;
inline constexpr CudaResult kCudaNotReady = 600;
inline constexpr CudaResult kCudaNotSupported = 801;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kMemcpyDefault = 4;
inline constexpr int kCaptureModeGlobal = 0, kCaptureModeRelaxed = 2;

class CudaApi {
 public:
  virtual ~CudaApi() = default;

  virtual int version() const = 0;  // of the runtime: 12090 for 12.9
  virtual CudaResult GetDeviceCount(int* count) = 0;
  virtual CudaResult SetDevice(int device) = 0;
  // "0000:17:00.0": the device as the machine's other tools know it.
  virtual CudaResult DeviceGetPciBusId(int device, std::string* id) = 0;
  // How the calling thread gets along with a thread that captures a graph, kCaptureModeGlobal
  // unless this sets another: *mode becomes what it was before. Runtimes without it change nothing.
  virtual CudaResult ThreadExchangeStreamCaptureMode(int* mode) = 0;
  virtual CudaResult Malloc(void** data, size_t bytes) = 0;
  virtual CudaResult Free(void* data) = 0;
  // A stream that doesn't wait for the default stream, of the highest priority that there is.
  virtual CudaResult StreamCreate(void** stream) = 0;
  virtual CudaResult StreamDestroy(void* stream) = 0;
  // An event that measures no time.
  virtual CudaResult EventCreate(void** event) = 0;
  virtual CudaResult EventDestroy(void* event) = 0;
  virtual CudaResult EventRecord(void* event, void* stream) = 0;
  virtual CudaResult EventQuery(void* event) = 0;
  // `to` and `from` may each be in the host's memory or the device's: CUDA finds that out from the
  // addresses.
  virtual CudaResult MemcpyAsync(void* to, const void* from, size_t bytes, void* stream) = 0;
  virtual std::string ErrorString(CudaResult result) = 0;
};

}  // namespace ringmaster::nccl
