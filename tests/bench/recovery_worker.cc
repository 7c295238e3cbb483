// The worker of the recovery benchmark. A step is a 1 MiB allreduce and a 50 ms sleep, as the peers
// were measured. Appends a line of JSON for each completed step to
// $RINGMASTER_AUDIT_DIR/<pid>.jsonl: monotonic time in nanoseconds, step, epoch, rank, size, and a
// hash of a model that every result is folded into: equal hashes mean equal histories.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "ringmaster/ringmaster.h"

namespace {

constexpr size_t kCount = (1u << 20) / sizeof(float);
constexpr useconds_t kSleep = 50000;

struct Model {
  uint64_t hash = 14695981039346656037u;
  uint64_t steps = 0;
};

int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

uint64_t Fold(uint64_t hash, const std::vector<float>& data) {
  for (size_t i = 0; i < data.size(); i += 64) {
    uint32_t bits;
    std::memcpy(&bits, &data[i], sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  }
  return hash;
}

int Fail(const char* what) {
  std::fprintf(stderr, "recovery_worker: %s: %s\n", what, rm_last_error());
  return 1;
}

// RM_OK: `out` holds the sum over all ranks.
rm_status Allreduce(const std::vector<float>& in, std::vector<float>* out) {
  rm_handle handle = 0;
  const rm_status begun = rm_allreduce_async("gradient", in.data(), out->data(), kCount, RM_FLOAT32,
                                             RM_SUM, 1, 1, &handle);
  if (begun != RM_OK) return begun;
  const rm_status done = rm_wait(handle, 0);
  rm_release(handle);
  return done;
}

rm_status TakeStep(Model* model, rm_step_info* info) {
  static std::vector<float> in(kCount), out(kCount);
  for (size_t i = 0; i < kCount; ++i)
    in[i] = static_cast<float>((model->steps + i) % 13 + rm_rank());
  const rm_status reduced = Allreduce(in, &out);
  if (reduced != RM_OK) return reduced;
  model->hash = Fold(model->hash, out);
  ++model->steps;
  return rm_step_end(info);
}

void Append(FILE* log, const Model& model, uint64_t epoch) {
  std::fprintf(log,
               "{\"t\": %lld, \"step\": %llu, \"epoch\": %llu, \"rank\": %d, \"size\": %d, "
               "\"hash\": \"%016llx\"}\n",
               static_cast<long long>(MonotonicNanoseconds()),
               static_cast<unsigned long long>(model.steps), static_cast<unsigned long long>(epoch),
               rm_rank(), rm_size(), static_cast<unsigned long long>(model.hash));
  std::fflush(log);
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = argc > 1 ? std::atol(argv[1]) : 1000000;
  const char* directory = std::getenv("RINGMASTER_AUDIT_DIR");
  if (rm_init(0) != RM_OK) return Fail("init");
  Model model;
  rm_state_register("model", &model, sizeof model);
  if (rm_enter(0) != RM_OK) return Fail("enter");

  const std::string path =
      std::string(directory ? directory : "/tmp") + "/" + std::to_string(getpid()) + ".jsonl";
  FILE* log = std::fopen(path.c_str(), "a");
  if (log == nullptr) return Fail(path.c_str());
  while (static_cast<long>(model.steps) < steps) {
    rm_report("total_steps", static_cast<double>(steps));
    rm_step_info info{};
    const rm_status status = TakeStep(&model, &info);
    if (status == RM_ERR_LEFT) return 0;
    if (status == RM_ERR_DROPPED && rm_enter(0) == RM_OK) continue;  // with the others' state
    if (status != RM_OK) return Fail("step");
    Append(log, model, info.epoch);
    usleep(kSleep);
  }
  std::fclose(log);
  return rm_shutdown(0) == RM_OK ? 0 : Fail("shutdown");
}
