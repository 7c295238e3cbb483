// The CUDA runtime's C functions, as real_cuda.cc looks for them.
#include <cstdio>
#include <string>

#include "collectives/nccl/fake/library/fake_library.h"

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)

using ringmaster::nccl::CudaResult;
using ringmaster::nccl::FakeLibraryCuda;
using ringmaster::nccl::kCudaSuccess;

extern "C" {

CudaResult cudaRuntimeGetVersion(int* version) {
  *version = FakeLibraryCuda().version();
  return kCudaSuccess;
}
CudaResult cudaGetDeviceCount(int* count) { return FakeLibraryCuda().GetDeviceCount(count); }
CudaResult cudaSetDevice(int device) { return FakeLibraryCuda().SetDevice(device); }
CudaResult cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  std::string text;
  const CudaResult result = FakeLibraryCuda().DeviceGetPciBusId(device, &text);
  std::snprintf(id, static_cast<size_t>(bytes), "%s", text.c_str());
  return result;
}
CudaResult cudaThreadExchangeStreamCaptureMode(int* mode) {
  return FakeLibraryCuda().ThreadExchangeStreamCaptureMode(mode);
}
CudaResult cudaMalloc(void** data, size_t bytes) { return FakeLibraryCuda().Malloc(data, bytes); }
CudaResult cudaFree(void* data) { return FakeLibraryCuda().Free(data); }
CudaResult cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return kCudaSuccess;
}
CudaResult cudaStreamCreateWithPriority(void** stream, unsigned /*flags*/, int /*priority*/) {
  return FakeLibraryCuda().StreamCreate(stream);
}
CudaResult cudaStreamDestroy(void* stream) { return FakeLibraryCuda().StreamDestroy(stream); }
CudaResult cudaEventCreateWithFlags(void** event, unsigned /*flags*/) {
  return FakeLibraryCuda().EventCreate(event);
}
CudaResult cudaEventDestroy(void* event) { return FakeLibraryCuda().EventDestroy(event); }
CudaResult cudaEventRecord(void* event, void* stream) {
  return FakeLibraryCuda().EventRecord(event, stream);
}
CudaResult cudaEventQuery(void* event) { return FakeLibraryCuda().EventQuery(event); }
CudaResult cudaMemcpyAsync(void* to, const void* from, size_t bytes, int /*kind*/, void* stream) {
  return FakeLibraryCuda().MemcpyAsync(to, from, bytes, stream);
}
const char* cudaGetErrorString(CudaResult result) {
  static thread_local std::string text;
  text = FakeLibraryCuda().ErrorString(result);
  return text.c_str();
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
