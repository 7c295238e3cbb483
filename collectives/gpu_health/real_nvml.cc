#include "collectives/gpu_health/real_nvml.h"

#include <utility>

#include "collectives/shared_library/shared_library.h"

namespace ringmaster::gpu_health {
namespace {

// Names, values and layouts as NVML's public reference has them.
constexpr unsigned long long kEventTypeXid = 0x8;  // nvmlEventTypeXidCriticalError
constexpr int kUncorrected = 1, kVolatile = 0;     // nvmlMemoryErrorType_t, nvmlEccCounterType_t
constexpr int kTemperatureOfGpu = 0;               // nvmlTemperatureSensors_t

struct EventData {  // nvmlEventData_t
  void* device = nullptr;
  unsigned long long type = 0, data = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

class RealNvml : public NvmlApi {
 public:
  static Status Load(SharedLibrary library, std::shared_ptr<NvmlApi>* out) {
    auto nvml = std::make_shared<RealNvml>();
    if (Status s = nvml->ResolveAll(&library); !s.ok()) return s;
    *out = std::move(nvml);
    return {};
  }

  NvmlResult Init() override { return init_(); }
  NvmlResult DeviceGetHandleByPciBusId(const std::string& bus_id, void** device) override {
    return by_bus_id_(bus_id.c_str(), device);
  }
  NvmlResult RegisterXids(void* device) override {
    if (const NvmlResult r = set_create_(&set_); r != kNvmlSuccess) return r;
    return register_(device, kEventTypeXid, set_);
  }
  NvmlResult EventSetWait(unsigned timeout_ms, std::uint64_t* xid) override {
    EventData event;
    const NvmlResult r = set_wait_(set_, &event, timeout_ms);
    if (r == kNvmlSuccess && event.type != kEventTypeXid) return kNvmlTimeout;
    *xid = event.data;
    return r;
  }
  NvmlResult TotalEccErrors(void* device, std::uint64_t* count) override {
    unsigned long long errors = 0;
    const NvmlResult r = ecc_(device, kUncorrected, kVolatile, &errors);
    *count = errors;
    return r;
  }
  // Older drivers don't have it.
  NvmlResult RemappedRows(void* device, bool* pending, bool* failed) override {
    if (remapped_ == nullptr) return kNvmlNotSupported;
    unsigned corrected = 0, uncorrected = 0, waits = 0, failure = 0;
    const NvmlResult r = remapped_(device, &corrected, &uncorrected, &waits, &failure);
    *pending = waits != 0;
    *failed = failure != 0;
    return r;
  }
  NvmlResult CurrentClocksThrottleReasons(void* device, std::uint64_t* reasons) override {
    if (throttle_ == nullptr) return kNvmlNotSupported;
    unsigned long long bits = 0;
    const NvmlResult r = throttle_(device, &bits);
    *reasons = bits;
    return r;
  }
  NvmlResult Temperature(void* device, unsigned* celsius) override {
    return temperature_(device, kTemperatureOfGpu, celsius);
  }

 private:
  Status ResolveAll(SharedLibrary* library) {
    library->Resolve("nvmlInit_v2", &init_);
    library->Resolve("nvmlDeviceGetHandleByPciBusId_v2", &by_bus_id_);
    library->Resolve("nvmlEventSetCreate", &set_create_);
    library->Resolve("nvmlDeviceRegisterEvents", &register_);
    library->Resolve("nvmlEventSetWait_v2", &set_wait_);
    library->Resolve("nvmlDeviceGetTotalEccErrors", &ecc_);
    library->Resolve("nvmlDeviceGetTemperature", &temperature_);
    remapped_ = reinterpret_cast<decltype(remapped_)>(library->Find("nvmlDeviceGetRemappedRows"));
    // The second is the name of older drivers.
    for (const char* name :
         {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
      if (throttle_ == nullptr)
        throttle_ = reinterpret_cast<decltype(throttle_)>(library->Find(name));
    }
    return library->CheckResolved();
  }

  void* set_ = nullptr;  // nvmlEventSet_t; ends with the process
  NvmlResult (*init_)() = nullptr;
  NvmlResult (*by_bus_id_)(const char*, void**) = nullptr;
  NvmlResult (*set_create_)(void**) = nullptr;
  NvmlResult (*register_)(void*, unsigned long long, void*) = nullptr;
  NvmlResult (*set_wait_)(void*, EventData*, unsigned) = nullptr;
  NvmlResult (*ecc_)(void*, int, int, unsigned long long*) = nullptr;
  NvmlResult (*remapped_)(void*, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  NvmlResult (*throttle_)(void*, unsigned long long*) = nullptr;
  NvmlResult (*temperature_)(void*, int, unsigned*) = nullptr;
};

}  // namespace

Status LoadNvml(std::shared_ptr<NvmlApi>* out) { return LoadNvmlFrom("libnvidia-ml.so.1", out); }

Status LoadNvmlFrom(const char* name, std::shared_ptr<NvmlApi>* out) {
  SharedLibrary library;
  const char* const names[] = {name};
  if (Status s = SharedLibrary::Open(names, &library); !s.ok()) return s;
  return RealNvml::Load(std::move(library), out);
}

}  // namespace ringmaster::gpu_health
