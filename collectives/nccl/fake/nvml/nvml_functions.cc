// NVML's C functions, as collectives/gpu_health/real_nvml.cc looks for them. What the GPU has
// stands in a file that a test writes, nvml.PID in the folder RINGMASTER_FAKE_GPU_FOLDER, one line
// each:
//
//   xid N            an Xid; each of these lines is told once
//   ecc N            so many uncorrected errors of its memory
//   remap pending    or "remap failed"
//   throttle BITS    why its clock is low
//   celsius N        its temperature; else 50
//   lost             the driver has lost it
//   hang             calls don't return
//   dies MS          so long after the Xids have been told the process is killed
//
// Without the file all is well.
//
// Thread rule: one thread, the monitor's.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

// The names are NVML's.
// NOLINTBEGIN(readability-identifier-naming)

namespace {

constexpr int kSuccess = 0, kTimeout = 10, kLost = 15;
constexpr unsigned long long kXid = 0x8;

struct State {
  std::vector<unsigned long long> xids;
  unsigned long long ecc = 0, throttle = 0;
  unsigned celsius = 50;
  int dies_ms = -1;  // -1: it doesn't
  bool pending = false, failed = false, lost = false;
};

void Sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

State Read() {
  State state;
  const char* const folder = std::getenv("RINGMASTER_FAKE_GPU_FOLDER");
  std::ifstream file(std::string(folder == nullptr ? "/tmp" : folder) + "/nvml." +
                     std::to_string(getpid()));
  std::string what, value;
  while (file >> what) {
    if (what == "lost") state.lost = true;
    while (what == "hang") Sleep();
    if (what == "lost" || !(file >> value)) continue;
    if (what == "remap") (value == "pending" ? state.pending : state.failed) = true;
    const unsigned long long number = std::strtoull(value.c_str(), nullptr, 0);
    if (what == "xid") state.xids.push_back(number);
    if (what == "dies") state.dies_ms = static_cast<int>(number);
    if (what == "ecc") state.ecc = number;
    if (what == "throttle") state.throttle = number;
    if (what == "celsius") state.celsius = static_cast<unsigned>(number);
  }
  return state;
}

size_t told_xids = 0;

struct EventData {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

int Answer(const State& state) { return state.lost ? kLost : kSuccess; }

}  // namespace

extern "C" {

int nvmlInit_v2() { return kSuccess; }
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static int the_device;
  *device = &the_device;
  return Answer(Read());
}
int nvmlEventSetCreate(void** set) {
  static int the_set;
  *set = &the_set;
  return kSuccess;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long, void*) { return kSuccess; }
int nvmlEventSetWait_v2(void*, EventData* event, unsigned timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  do {
    const State state = Read();
    if (told_xids < state.xids.size()) {
      *event = {nullptr, kXid, state.xids[told_xids++], 0, 0};
      return kSuccess;
    }
    if (state.dies_ms >= 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(state.dies_ms));
      kill(getpid(), SIGKILL);
    }
    Sleep();
  } while (std::chrono::steady_clock::now() < until);
  return kTimeout;
}
int nvmlDeviceGetTotalEccErrors(void*, int, int, unsigned long long* count) {
  const State state = Read();
  *count = state.ecc;
  return Answer(state);
}
int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  const State state = Read();
  *corrected = *uncorrected = 0;
  *pending = state.pending ? 1 : 0;
  *failed = state.failed ? 1 : 0;
  return Answer(state);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  const State state = Read();
  *reasons = state.throttle;
  return Answer(state);
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  const State state = Read();
  *celsius = state.celsius;
  return Answer(state);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
