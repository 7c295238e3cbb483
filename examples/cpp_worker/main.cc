// A worker in C++: fits a line to noisy points with data-parallel gradient descent, and goes on
// when workers come and go.
#include <ringmaster/ringmaster.h>

#include <cstdio>
#include <random>

namespace {

struct State {  // what a worker that joins later gets from the others
  float slope = 0, offset = 0;
  long step = 0;
} state;

bool Ok(rm_status status, const char* what) {
  if (status != RM_OK) std::fprintf(stderr, "%s: %s\n", what, rm_last_error());
  return status == RM_OK;
}

// The mean of the gradients of all ranks that took part.
bool Average(float (&gradient)[2]) {
  rm_handle handle;
  if (!Ok(rm_allreduce_async("gradient", gradient, gradient, 2, RM_FLOAT32, RM_AVERAGE, 1, 1,
                             &handle),
          "allreduce")) {
    return false;
  }
  const rm_status status = rm_wait(handle, 0);
  rm_release(handle);
  return Ok(status, "allreduce");
}

}  // namespace

int main() {
  if (!Ok(rm_init(0), "init")) return 1;
  rm_state_register("line", &state, sizeof state);
  if (!Ok(rm_enter(0), "enter")) return 1;  // one that joins waits here for its state

  while (state.step < 400) {
    std::mt19937 random(static_cast<unsigned>(state.step * rm_size() + rm_rank()));
    std::uniform_real_distribution<float> uniform(-1, 1);
    float gradient[2] = {0, 0};
    for (int i = 0; i < 256; ++i) {
      const float x = uniform(random), y = 3 * x + 1 + 0.1f * uniform(random);
      const float error = state.slope * x + state.offset - y;
      gradient[0] += 2 * error * x / 256;
      gradient[1] += 2 * error / 256;
    }
    if (!Average(gradient)) return 1;
    state.slope -= 0.1f * gradient[0];
    state.offset -= 0.1f * gradient[1];
    ++state.step;
    const rm_status end = rm_step_end(nullptr);
    if (end == RM_ERR_LEFT) return 0;  // drained: the others go on
    if (!Ok(end, "step_end")) return 1;
  }
  if (rm_rank() == 0)
    std::printf("y = %.2f x + %.2f after %ld steps\n", state.slope, state.offset, state.step);
  return Ok(rm_shutdown(0), "shutdown") ? 0 : 1;
}
