// The worker of the integration tests: starts in milliseconds, and ends when the test says so. A
// step is an allreduce and a short sleep; it writes a line for every completed step, flushed before
// the next begins:
//
//   step epoch rank size monotonic_ns hash_of_the_state
//
// The rank and the size are those that the calls of the next step mean, in the view `epoch`: after
// a fault this may be a view before the current one, which rm_rank() speaks of.
//
// elastic_worker OUT_DIR [--sleep-ms N] [--floats N] [--hold 1|2] [--ballast-mib N] [--gpu 1]
// With --gpu 1 the allreduce is of memory of CUDA's first device.
// Ends, on all ranks in the same step, when OUT_DIR/stop exists. With --hold 1 the worker that
// gives the state (2: each that takes it) says so with OUT_DIR/saving.PID (loading.PID) and waits
// for OUT_DIR/go. While OUT_DIR/absent.RANK exists the worker of that rank begins no step, and
// while OUT_DIR/closed exists a worker that starts does not enter the job.
// With OUT_DIR/eats.RANK it takes memory until somebody ends it. Ballast is state that nobody
// changes; a worker that has got it from others says in OUT_DIR/ballast.PID whether all of it is
// right.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ringmaster/ringmaster.h"
#include "tests/integration/device_floats.h"

namespace {

using std::chrono::milliseconds;

constexpr double kPatience = 120;

// This worker's rank as the step's calls mean it (rm_step_worker_id).
struct Place {
  uint64_t epoch;
  int rank, size;
};

Place PlaceInStep() {
  const std::string self = rm_worker_id(-1);
  for (;;) {  // until nothing moved between the first look and the last
    Place place{rm_step_epoch(), -1, 0};
    for (std::string worker; !(worker = rm_step_worker_id(place.size)).empty(); ++place.size)
      if (worker == self) place.rank = place.size;
    if (rm_step_epoch() == place.epoch) return place;
  }
}

struct Options {
  std::string out;
  int sleep_ms = 10;
  size_t floats = 65536;
  int hold = 0;
  size_t ballast_mib = 0;
  bool gpu = false;
};

bool Parse(int argc, char** argv, Options* options) {
  if (argc < 2) return false;
  options->out = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    std::string name = argv[i];
    int value = std::atoi(argv[i + 1]);
    if (name == "--sleep-ms")
      options->sleep_ms = value;
    else if (name == "--floats")
      options->floats = static_cast<size_t>(value);
    else if (name == "--hold")
      options->hold = value;
    else if (name == "--ballast-mib")
      options->ballast_mib = static_cast<size_t>(value);
    else if (name == "--gpu")
      options->gpu = value != 0;
    else
      return false;
  }
  return argc % 2 == 0;
}

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "elastic_worker: %s: %s\n", what, rm_last_error());
  std::exit(1);
}

// 0: go on, 1: leave (drained).
bool Left(rm_status status, const char* what) {
  if (status == RM_ERR_LEFT) return true;
  if (status != RM_OK) Die(what);
  return false;
}

uint64_t Hash(const std::vector<float>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
  }
  return hash;
}

long long Nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// State that is large: a number in each page tells whether the page came, and to its place.
class Ballast {
 public:
  explicit Ballast(size_t bytes)
      : bytes_(bytes), words_(static_cast<uint64_t*>(std::calloc(bytes, 1))) {}
  ~Ballast() { std::free(words_); }
  Ballast(const Ballast&) = delete;
  Ballast& operator=(const Ballast&) = delete;

  void Register() { rm_state_register("ballast", words_, bytes_); }
  void Fill() {
    for (size_t at = 0; at < Words(); at += kStep) words_[at] = Right(at);
    words_[Words() - 1] = Right(Words() - 1);
  }
  bool IsRight() const {
    bool right = words_[Words() - 1] == Right(Words() - 1);
    for (size_t at = 0; at < Words(); at += kStep) right = right && words_[at] == Right(at);
    return right;
  }

 private:
  static constexpr size_t kStep = 4096 / sizeof(uint64_t);
  static uint64_t Right(size_t at) { return at * 0x9e3779b97f4a7c15u + 1; }
  size_t Words() const { return bytes_ / sizeof(uint64_t); }

  const size_t bytes_;
  uint64_t* const words_;
};

class Worker {
 public:
  explicit Worker(const Options& options)
      : options_(options), state_(options.floats), gradient_(options.floats), sum_(options.floats) {
    std::string file = options.out + "/" + std::to_string(getpid()) + ".log";
    log_ = std::fopen(file.c_str(), "w");
    if (!log_) {
      std::perror(file.c_str());
      std::exit(1);
    }
    if (!options.gpu) return;
    on_gpu_ = std::make_unique<integration::DeviceFloats>(options.floats);
    if (!on_gpu_->ok()) {
      std::fprintf(stderr, "elastic_worker: no memory of a GPU\n");
      std::exit(1);
    }
  }

  // The exit status.
  int Run() {
    rm_state_register("state", state_.data(), state_.size() * sizeof(float));
    rm_state_register("steps", &steps_, sizeof steps_);
    rm_state_register("stop", &stop_, sizeof stop_);
    if (options_.hold != 0) rm_state_callbacks(Save, Load, this);
    Ballast ballast(options_.ballast_mib << 20);
    if (options_.ballast_mib != 0) ballast.Register();
    WaitWhileExists("closed");
    if (Left(rm_enter(kPatience), "rm_enter")) return 0;
    if (options_.ballast_mib != 0) Settle(&ballast);
    while (stop_ == 0) {
      WaitWhileExists("absent." + std::to_string(rm_rank()));
      EatIfAsked();
      rm_status done = Step();
      if (done == RM_ERR_DROPPED) done = rm_enter(kPatience);  // again, with the others' state
      if (done == RM_ERR_DROPPED) return RM_EXIT_DROPPED;
      if (Left(done, "a step")) return 0;
      if (stop_ != 0) break;
      std::this_thread::sleep_for(milliseconds(options_.sleep_ms));
    }
    const rm_status ended = rm_shutdown(kPatience);
    if (ended == RM_ERR_DROPPED) return RM_EXIT_DROPPED;
    if (ended != RM_OK) Die("rm_shutdown");
    return 0;
  }

 private:
  static int Save(void* self, const void** data, size_t* bytes) {
    static const char kNothing = 0;
    static_cast<Worker*>(self)->Hold(1, "saving");
    *data = &kNothing;
    *bytes = sizeof kNothing;
    return 0;
  }
  static int Load(void* self, const void*, size_t) {
    static_cast<Worker*>(self)->Hold(2, "loading");
    return 0;
  }
  void Hold(int which, const std::string& what) {
    if (options_.hold != which) return;
    std::string file = options_.out + "/" + what + "." + std::to_string(getpid());
    if (std::FILE* said = std::fopen(file.c_str(), "w")) std::fclose(said);
    std::string go = options_.out + "/go";
    for (int i = 0; i < 6000 && access(go.c_str(), F_OK) != 0; ++i)
      std::this_thread::sleep_for(milliseconds(5));
  }

  // Who begins the job makes it, who comes later has been given it.
  void Settle(Ballast* ballast) const {
    if (steps_ == 0) return ballast->Fill();
    const std::string file = options_.out + "/ballast." + std::to_string(getpid());
    const std::string whole = file + ".new";
    std::FILE* said = std::fopen(whole.c_str(), "w");
    if (said == nullptr) Die("ballast");
    std::fputs(ballast->IsRight() ? "right" : "wrong", said);
    std::fclose(said);
    std::rename(whole.c_str(), file.c_str());
  }

  // One worker once: its successor finds the file gone.
  void EatIfAsked() const {
    const std::string file = options_.out + "/eats." + std::to_string(rm_rank());
    if (unlink(file.c_str()) != 0) return;
    constexpr size_t kBite = 16u << 20;
    for (std::vector<std::vector<char>> eaten;;) eaten.emplace_back(kBite, 'x');
  }

  void WaitWhileExists(const std::string& name) const {
    const std::string file = options_.out + "/" + name;
    for (int i = 0; i < 24000 && access(file.c_str(), F_OK) == 0; ++i)
      std::this_thread::sleep_for(milliseconds(5));
  }

  rm_status Step() {
    // Different on every rank, so that a sum shows whose part is in it.
    float own = static_cast<float>(getpid() % 1000) + 0.25f * static_cast<float>(steps_ % 7);
    for (size_t i = 0; i < gradient_.size(); ++i)
      gradient_[i] = own + static_cast<float>(i % 113) * 0.01f;
    gradient_[0] = access((options_.out + "/stop").c_str(), F_OK) == 0 ? 1 : 0;

    rm_status done = Allreduce();
    if (done != RM_OK) return done;
    stop_ = sum_[0] > 0 ? 1 : 0;
    for (size_t i = 0; i < state_.size(); ++i) state_[i] = 0.9f * state_[i] + 0.1f * sum_[i];
    ++steps_;

    if (done = rm_step_end(nullptr); done != RM_OK) return done;
    const Place place = PlaceInStep();
    std::fprintf(log_, "%llu %llu %d %d %lld %016llx\n", static_cast<unsigned long long>(steps_),
                 static_cast<unsigned long long>(place.epoch), place.rank, place.size,
                 Nanoseconds(), static_cast<unsigned long long>(Hash(state_)));
    std::fflush(log_);
    return RM_OK;
  }

  rm_status Allreduce() {
    const size_t shape[] = {sum_.size()};
    rm_request request = rm_request_of(RM_ALLREDUCE, "gradient");
    request.in = gradient_.data();
    request.out = sum_.data();
    request.shape = shape;
    request.dimensions = 1;
    request.dtype = RM_FLOAT32;
    request.op = RM_SUM;
    if (on_gpu_ != nullptr) {
      if (!on_gpu_->Upload(gradient_)) return RM_ERR_INTERNAL;
      request.in = request.out = on_gpu_->data();
      request.device = 1;
    }
    rm_handle handle = 0;
    rm_status done = rm_submit(&request, 1, &handle);
    if (done != RM_OK) return done;
    done = rm_wait(handle, kPatience);
    rm_release(handle);
    if (done == RM_OK && on_gpu_ != nullptr && !on_gpu_->Download(&sum_)) return RM_ERR_INTERNAL;
    return done;
  }

  const Options options_;
  std::unique_ptr<integration::DeviceFloats> on_gpu_;  // null: the host's memory
  std::vector<float> state_, gradient_, sum_;
  uint64_t steps_ = 0;
  uint8_t stop_ =
      0;  // state too: a worker that joins at the last boundary must end with the others
  std::FILE* log_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: elastic_worker OUT_DIR [--sleep-ms N] [--floats N] [--gpu 1]\n");
    return 2;
  }
  if (rm_init(kPatience) != RM_OK) Die("rm_init");
  return Worker(options).Run();
}
