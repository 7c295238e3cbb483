// Memory on CUDA's first device, as a worker has it that uses the runtime by itself.
//
// Thread rule: one thread.
#pragma once

#include <dlfcn.h>

#include <chrono>
#include <thread>
#include <type_traits>
#include <vector>

namespace integration {

class DeviceFloats {
 public:
  explicit DeviceFloats(size_t count) {
    void* cuda = dlopen("libcudart.so.12", RTLD_NOW);
    if (cuda == nullptr) return;
    const auto find = [cuda](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(cuda, name));
      return *function != nullptr;
    };
    int (*malloc_on_device)(void**, size_t) = nullptr;
    int (*create_stream)(void**, unsigned, int) = nullptr;
    int (*create_event)(void**, unsigned) = nullptr;
    const bool found = find("cudaMalloc", &malloc_on_device) &&
                       find("cudaStreamCreateWithPriority", &create_stream) &&
                       find("cudaEventCreateWithFlags", &create_event) &&
                       find("cudaMemcpyAsync", &copy_) && find("cudaEventRecord", &record_) &&
                       find("cudaEventQuery", &query_);
    ok_ = found && malloc_on_device(&data_, count * sizeof(float)) == 0 &&
          create_stream(&stream_, 0, 0) == 0 && create_event(&event_, 0) == 0;
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;

  bool ok() const { return ok_; }
  void* data() const { return data_; }
  bool Upload(const std::vector<float>& values) {
    return Copy(data_, values.data(), values.size() * sizeof(float));
  }
  bool Download(std::vector<float>* values) {
    return Copy(values->data(), data_, values->size() * sizeof(float));
  }

 private:
  bool Copy(void* to, const void* from, size_t bytes) {
    constexpr int kWherever = 4;  // cudaMemcpyDefault
    if (copy_(to, from, bytes, kWherever, stream_) != 0 || record_(event_, stream_) != 0)
      return false;
    for (int i = 0; i < 100'000; ++i) {
      if (query_(event_) == 0) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }

  int (*copy_)(void*, const void*, size_t, int, void*) = nullptr;
  int (*record_)(void*, void*) = nullptr;
  int (*query_)(void*) = nullptr;
  void *data_ = nullptr, *stream_ = nullptr, *event_ = nullptr;
  bool ok_ = false;
};

}  // namespace integration
