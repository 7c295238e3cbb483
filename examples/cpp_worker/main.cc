// A worker in C++: fits a line to noisy points with data-parallel gradient descent, and goes on
// when workers come and go.
#include <ringmaster/ringmaster.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

struct State {  // what a worker that joins later gets from the others
  float slope = 0, offset = 0;
  long step = 0;
} state;

// Ends the process if a call has failed. One that the others went on without by mistake, because it
// was silent for a while, is started again: no failure is counted for this exit status.
void Check(rm_status status, const char* what) {
  if (status == RM_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, rm_last_error());
  std::exit(status == RM_ERR_DROPPED ? RM_EXIT_DROPPED : 1);
}

// The mean of the gradients of all ranks that took part.
void Average(float (&gradient)[2]) {
  rm_handle handle;
  Check(
      rm_allreduce_async("gradient", gradient, gradient, 2, RM_FLOAT32, RM_AVERAGE, 1, 1, &handle),
      "allreduce");
  Check(rm_wait(handle, 0), "allreduce");
  rm_release(handle);
}

}  // namespace

int main() {
  Check(rm_init(0), "init");
  rm_state_register("line", &state, sizeof state);
  Check(rm_enter(0), "enter");  // one that joins waits here for its state

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
    Average(gradient);
    state.slope -= 0.1f * gradient[0];
    state.offset -= 0.1f * gradient[1];
    ++state.step;
    const rm_status end = rm_step_end(nullptr);
    if (end == RM_ERR_LEFT) return 0;  // drained: the others go on
    Check(end, "step_end");
  }
  if (rm_rank() == 0)
    std::printf("y = %.2f x + %.2f after %ld steps\n", state.slope, state.offset, state.step);
  Check(rm_shutdown(0), "shutdown");
}
