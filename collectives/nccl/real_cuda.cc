#include "collectives/nccl/real_cuda.h"

#include <utility>

namespace ringmaster::nccl {
namespace {

constexpr const char* kCudaNames[] = {"libcudart.so.12", "libcudart.so.13"};

class RealCuda : public CudaApi {
 public:
  static Status Load(SharedLibrary library, std::unique_ptr<CudaApi>* out) {
    std::unique_ptr<RealCuda> cuda(new RealCuda);
    if (Status s = cuda->ResolveAll(&library); !s.ok()) return s;
    if (cuda->runtime_get_version_(&cuda->version_) != kCudaSuccess) {
      return {RM_ERR_UNAVAILABLE, library.name() + " does not say its version"};
    }
    *out = std::move(cuda);
    return {};
  }

  int version() const override { return version_; }
  CudaResult GetDeviceCount(int* count) override { return get_device_count_(count); }
  CudaResult SetDevice(int device) override { return set_device_(device); }
  CudaResult DeviceGetPciBusId(int device, std::string* id) override {
    char text[32] = "";
    if (pci_bus_id_ == nullptr) return kCudaNotSupported;
    const CudaResult r = pci_bus_id_(text, sizeof(text), device);
    *id = text;
    return r;
  }
  CudaResult ThreadExchangeStreamCaptureMode(int* mode) override {
    return exchange_capture_mode_ == nullptr ? kCudaSuccess : exchange_capture_mode_(mode);
  }
  CudaResult Malloc(void** data, size_t bytes) override { return malloc_(data, bytes); }
  CudaResult Free(void* data) override { return free_(data); }
  CudaResult StreamCreate(void** stream) override {
    int least = 0, greatest = 0;
    if (CudaResult r = priority_range_(&least, &greatest); r != kCudaSuccess) return r;
    return stream_create_(stream, kStreamNonBlocking, greatest);
  }
  CudaResult StreamDestroy(void* stream) override { return stream_destroy_(stream); }
  CudaResult EventCreate(void** event) override {
    return event_create_(event, kEventDisableTiming);
  }
  CudaResult EventDestroy(void* event) override { return event_destroy_(event); }
  CudaResult EventRecord(void* event, void* stream) override {
    return event_record_(event, stream);
  }
  CudaResult EventQuery(void* event) override { return event_query_(event); }
  CudaResult MemcpyAsync(void* to, const void* from, size_t bytes, void* stream) override {
    return memcpy_async_(to, from, bytes, kMemcpyDefault, stream);
  }
  std::string ErrorString(CudaResult result) override { return get_error_string_(result); }

 private:
  Status ResolveAll(SharedLibrary* library) {
    library->Resolve("cudaRuntimeGetVersion", &runtime_get_version_);
    library->Resolve("cudaGetDeviceCount", &get_device_count_);
    library->Resolve("cudaSetDevice", &set_device_);
    library->Resolve("cudaMalloc", &malloc_);
    library->Resolve("cudaFree", &free_);
    library->Resolve("cudaDeviceGetStreamPriorityRange", &priority_range_);
    library->Resolve("cudaStreamCreateWithPriority", &stream_create_);
    library->Resolve("cudaStreamDestroy", &stream_destroy_);
    library->Resolve("cudaEventCreateWithFlags", &event_create_);
    library->Resolve("cudaEventDestroy", &event_destroy_);
    library->Resolve("cudaEventRecord", &event_record_);
    library->Resolve("cudaEventQuery", &event_query_);
    library->Resolve("cudaMemcpyAsync", &memcpy_async_);
    library->Resolve("cudaGetErrorString", &get_error_string_);
    exchange_capture_mode_ = reinterpret_cast<CudaResult (*)(int*)>(
        library->Find("cudaThreadExchangeStreamCaptureMode"));
    pci_bus_id_ =
        reinterpret_cast<CudaResult (*)(char*, int, int)>(library->Find("cudaDeviceGetPCIBusId"));
    return library->CheckResolved();
  }

  int version_ = 0;
  CudaResult (*runtime_get_version_)(int*) = nullptr;
  CudaResult (*get_device_count_)(int*) = nullptr;
  CudaResult (*set_device_)(int) = nullptr;
  CudaResult (*exchange_capture_mode_)(int*) = nullptr;  // null: this runtime has none
  CudaResult (*pci_bus_id_)(char*, int, int) = nullptr;  // null: this runtime has none
  CudaResult (*malloc_)(void**, size_t) = nullptr;
  CudaResult (*free_)(void*) = nullptr;
  CudaResult (*priority_range_)(int*, int*) = nullptr;
  CudaResult (*stream_create_)(void**, unsigned, int) = nullptr;
  CudaResult (*stream_destroy_)(void*) = nullptr;
  CudaResult (*event_create_)(void**, unsigned) = nullptr;
  CudaResult (*event_destroy_)(void*) = nullptr;
  CudaResult (*event_record_)(void*, void*) = nullptr;
  CudaResult (*event_query_)(void*) = nullptr;
  CudaResult (*memcpy_async_)(void*, const void*, size_t, int, void*) = nullptr;
  const char* (*get_error_string_)(int) = nullptr;
};

}  // namespace

Status LoadCuda(SharedLibrary::Where where, std::unique_ptr<CudaApi>* out, bool* missing) {
  SharedLibrary library;
  const Status opened = SharedLibrary::Open(kCudaNames, &library, where);
  *missing = !opened.ok();
  if (*missing) return opened;
  return RealCuda::Load(std::move(library), out);
}

Status LoadCudaFrom(const char* name, std::unique_ptr<CudaApi>* out) {
  SharedLibrary library;
  const char* const names[] = {name};
  if (Status s = SharedLibrary::Open(names, &library); !s.ok()) return s;
  return RealCuda::Load(std::move(library), out);
}

}  // namespace ringmaster::nccl
