// A worker process for tests, over the C ABI of the shared library. It trains until step STEPS and
// prints the sum of the weights after each step.
//   test_worker STEPS   : "step <n> <epoch> <size> <sum>", at the end "end <status name>"
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ringmaster/ringmaster.h"

namespace {

int End(rm_status status) {
  std::printf("end %s %s\n", rm_status_name(status), rm_last_error());
  std::fflush(stdout);
  rm_shutdown(20);
  return status == RM_OK || status == RM_ERR_LEFT ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t steps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10;
  std::vector<double> weights(1000, 0.0);
  uint64_t step = 0;
  rm_state_register("weights", weights.data(), weights.size() * sizeof(double));
  rm_state_register("step", &step, sizeof(step));
  if (rm_status s = rm_init(20); s != RM_OK) return End(s);
  if (rm_status s = rm_enter(20); s != RM_OK) return End(s);
  while (step < steps) {
    // Each weight grows by the average of what the ranks give, which is 1 whoever takes part.
    std::vector<double> ones(weights.size(), 1.0);
    rm_handle handle;
    rm_status status = rm_allreduce_async("gradient", ones.data(), ones.data(), ones.size(),
                                          RM_FLOAT64, RM_AVERAGE, 1, 1, &handle);
    if (status == RM_OK) {
      status = rm_wait(handle, 20);
      rm_release(handle);
    }
    if (status != RM_OK) return End(status);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += ones[i];
    rm_report("samples", static_cast<double>(step));
    ++step;
    rm_step_info info;
    status = rm_step_end(&info);
    if (status != RM_OK) return End(status);
    double sum = 0;
    for (double w : weights) sum += w;
    std::printf("step %llu %llu %d %.0f\n", static_cast<unsigned long long>(info.step),
                static_cast<unsigned long long>(info.epoch), info.new_size, sum);
    std::fflush(stdout);
    usleep(2000);
  }
  return End(RM_OK);
}
