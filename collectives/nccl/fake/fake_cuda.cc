#include <algorithm>
#include <chrono>
#include <cstring>

#include "collectives/nccl/fake/fake_state.h"

namespace ringmaster::nccl {
namespace {

constexpr std::chrono::seconds kForEver{20};
constexpr size_t kMostStaged = 64 << 10;
constexpr CudaResult kInvalidValue = 1, kCudaNoDevice = 100, kInvalidDevice = 101,
                     kInvalidHandle = 400, kCaptureUnsupported = 900;

thread_local int current_device = 0, capture_mode = kCaptureModeGlobal;

void RunStream(FakeStream* stream, std::mutex* mu, std::condition_variable* changed) {
  std::unique_lock lock(*mu);
  while (true) {
    changed->wait(lock, [&] { return stream->closing || !stream->tasks.empty(); });
    if (stream->tasks.empty()) return;
    auto task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    stream->busy = true;
    task(&lock);
    stream->busy = false;
    changed->notify_all();
  }
}

}  // namespace

FakeCluster::FakeCluster() = default;
FakeCluster::~FakeCluster() = default;

void FakeCluster::Blame(const std::string& what) {
  misuse_.push_back(what);
  if (on_event) on_event("misuse: " + what);
}

void FakeCluster::CountMade(const std::string& how) {
  ++made_[how];
  if (on_event) on_event("made: " + how);
}

void FakeCluster::EndDeafKernels() {
  std::lock_guard lock(mu_);
  deaf_end_ = true;
  changed_.notify_all();
}

void FakeCluster::AnswerAborts(Result result) {
  std::lock_guard lock(mu_);
  aborts_answer_ = result;
}

std::vector<std::string> FakeCluster::misuse() {
  std::lock_guard lock(mu_);
  return misuse_;
}

std::map<std::string, int> FakeCluster::made() {
  std::lock_guard lock(mu_);
  return made_;
}

int FakeCluster::unaligned_results() {
  std::lock_guard lock(mu_);
  return unaligned_results_;
}

int FakeCluster::withdrawn() {
  std::lock_guard lock(mu_);
  return withdrawn_;
}

bool FakeCluster::AwaitKernels(int kernels) {
  std::unique_lock lock(mu_);
  return changed_.wait_for(lock, kForEver, [&] {
    int running = 0;
    for (const auto& comm : comms_) running += comm->running;
    return running == kernels;
  });
}

bool FakeCluster::AwaitOrBlame(std::unique_lock<std::mutex>* lock, const std::string& what,
                               const std::function<bool()>& done) {
  if (changed_.wait_for(*lock, kForEver, done)) return true;
  Blame(what + " waits for ever");
  return false;
}

FakeProcess::FakeProcess(FakeCluster* cluster, int version, int devices)
    : cluster_(cluster),
      version_(version),
      devices_(devices),
      cuda_(MakeFakeCuda(cluster, this)),
      nccl_(MakeFakeNccl(cluster, this, version)) {}

FakeProcess::~FakeProcess() {
  std::set<std::unique_ptr<FakeStream>> streams;
  std::vector<std::thread> launchers;
  {
    std::lock_guard lock(cluster_->mu_);
    ended_ = true;
    for (const auto& stream : streams_) stream->closing = true;
    streams.swap(streams_);
    launchers.swap(launchers_);
    cluster_->changed_.notify_all();
  }
  for (const auto& stream : streams) stream->thread.join();
  for (std::thread& launcher : launchers) launcher.join();
  // A thread that ends a communicator (AbortAll) may outlive the one that has started it.
  std::unique_lock lock(cluster_->mu_);
  cluster_->changed_.wait(lock, [&] { return ending_ == 0; });
  for (const auto& [at, block] : memory_) delete[] at;
}

Gpu FakeProcess::gpu(bool nccl) const {
  Gpu gpu;
  gpu.cuda = cuda_;
  gpu.devices = devices_;
  if (nccl) gpu.nccl = nccl_;
  if (!nccl) gpu.no_nccl = "the test has none";
  return gpu;
}

void FakeProcess::Enqueue(void* stream, std::function<bool()> done) {
  std::lock_guard lock(cluster_->mu_);
  static_cast<FakeStream*>(stream)->tasks.push_back(
      [this, done = std::move(done)](std::unique_lock<std::mutex>* held) {
        cluster_->changed_.wait(*held, [&] { return done() || ended_; });
      });
  cluster_->changed_.notify_all();
}

void FakeProcess::Notify() {
  std::lock_guard lock(cluster_->mu_);
  cluster_->changed_.notify_all();
}

size_t FakeProcess::bytes_allocated() {
  std::lock_guard lock(cluster_->mu_);
  size_t sum = 0;
  for (const auto& [at, block] : memory_) sum += block.bytes;
  return sum;
}

std::set<int> FakeProcess::used_devices() {
  std::lock_guard lock(cluster_->mu_);
  return used_devices_;
}

int FakeProcess::UseCurrent() {
  used_devices_.insert(current_device);
  return current_device;
}

bool FakeProcess::SpoilsCapture(const char* call) {
  if (!capturing_ || capture_mode == kCaptureModeRelaxed) return false;
  cluster_->Blame(std::string(call) + " spoils a capture");
  return true;
}

void FakeProcess::Capture() {
  std::lock_guard lock(cluster_->mu_);
  capturing_ = true;
}

int FakeProcess::communicators() {
  std::lock_guard lock(cluster_->mu_);
  return static_cast<int>(
      std::count_if(cluster_->comms_.begin(), cluster_->comms_.end(),
                    [this](const auto& comm) { return comm->process == this && !comm->freed; }));
}

void FakeProcess::FailCommunicators() {
  std::lock_guard lock(cluster_->mu_);
  for (const auto& comm : cluster_->comms_) {
    if (comm->process == this && !comm->freed) comm->error = Result::kRemoteError;
  }
}

void FakeProcess::HangRevokes() {
  std::lock_guard lock(cluster_->mu_);
  revokes_hang_ = true;
}

int FakeProcess::hung_revokes() {
  std::lock_guard lock(cluster_->mu_);
  return hung_revokes_;
}

void FakeProcess::RunOutOfMemory() {
  std::lock_guard lock(cluster_->mu_);
  out_of_memory_ = true;
}

std::optional<int> FakeProcess::DeviceOf(const void* at) const {
  const auto* address = static_cast<const std::byte*>(at);
  auto block = memory_.upper_bound(address);
  if (block == memory_.begin()) return std::nullopt;
  --block;
  if (address >= block->first + block->second.bytes) return std::nullopt;
  return block->second.device;
}

bool FakeProcess::Idle() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream->tasks.empty() && !stream->busy; });
}

class FakeCuda : public CudaApi {
 public:
  FakeCuda(FakeCluster* cluster, FakeProcess* process) : cluster_(cluster), process_(process) {}

  int version() const override { return 12090; }
  CudaResult GetDeviceCount(int* count) override {
    *count = process_->devices_;
    return *count > 0 ? kCudaSuccess : kCudaNoDevice;
  }
  CudaResult SetDevice(int device) override {
    std::lock_guard lock(cluster_->mu_);
    if (device < 0 || device >= process_->devices_) return kInvalidDevice;
    current_device = device;
    (void)process_->UseCurrent();
    return kCudaSuccess;
  }
  CudaResult DeviceGetPciBusId(int device, std::string* id) override {
    if (device < 0 || device >= process_->devices_) return kInvalidDevice;
    *id = "0000:" + std::to_string(10 + device) + ":00.0";
    return kCudaSuccess;
  }
  CudaResult ThreadExchangeStreamCaptureMode(int* mode) override {
    std::swap(*mode, capture_mode);
    return kCudaSuccess;
  }
  CudaResult Malloc(void** data, size_t bytes) override {
    std::lock_guard lock(cluster_->mu_);
    if (process_->SpoilsCapture("cudaMalloc")) return kCaptureUnsupported;
    if (process_->out_of_memory_) return kCudaMemoryAllocation;
    auto* made = new std::byte[bytes];
    process_->memory_[made] = {bytes, process_->UseCurrent()};
    *data = made;
    return kCudaSuccess;
  }
  CudaResult Free(void* data) override {
    std::unique_lock lock(cluster_->mu_);
    if (process_->SpoilsCapture("cudaFree")) return kCaptureUnsupported;
    (void)process_->UseCurrent();
    (void)cluster_->AwaitOrBlame(&lock, "cudaFree", [&] { return process_->Idle(); });
    if (process_->memory_.erase(static_cast<std::byte*>(data)) == 0) {
      cluster_->Blame("cudaFree of what is not the device's");
      return kInvalidValue;
    }
    delete[] static_cast<std::byte*>(data);
    return kCudaSuccess;
  }
  CudaResult StreamCreate(void** stream) override {
    std::lock_guard lock(cluster_->mu_);
    auto made = std::make_unique<FakeStream>();
    made->device = process_->UseCurrent();
    made->thread = std::thread(RunStream, made.get(), &cluster_->mu_, &cluster_->changed_);
    *stream = made.get();
    process_->streams_.insert(std::move(made));
    return kCudaSuccess;
  }
  CudaResult StreamDestroy(void* stream) override {
    std::thread thread;
    std::unique_ptr<FakeStream> taken;
    {
      std::lock_guard lock(cluster_->mu_);
      (void)process_->UseCurrent();
      for (auto it = process_->streams_.begin(); it != process_->streams_.end(); ++it) {
        if (it->get() != stream) continue;
        taken = std::move(process_->streams_.extract(it).value());
        break;
      }
      if (taken == nullptr) return kInvalidValue;
      taken->closing = true;
      cluster_->changed_.notify_all();
    }
    taken->thread.join();
    return kCudaSuccess;
  }
  CudaResult EventCreate(void** event) override {
    std::lock_guard lock(cluster_->mu_);
    const auto made = std::make_shared<FakeEvent>();
    made->device = process_->UseCurrent();
    process_->events_[made.get()] = made;
    *event = made.get();
    return kCudaSuccess;
  }
  CudaResult EventDestroy(void* event) override {
    std::lock_guard lock(cluster_->mu_);
    (void)process_->UseCurrent();
    return process_->events_.erase(event) == 1 ? kCudaSuccess : kInvalidValue;
  }
  CudaResult EventRecord(void* event, void* stream) override {
    std::lock_guard lock(cluster_->mu_);
    const auto of = FindEvent(event, "recorded");
    if (of == nullptr) return kInvalidHandle;
    if (of->device != static_cast<FakeStream*>(stream)->device) {
      cluster_->Blame("an event is recorded on a stream of another device");
      return kInvalidHandle;
    }
    const uint64_t number = ++of->recorded;
    Push(stream, [of, number](std::unique_lock<std::mutex>*) { of->reached = number; });
    return kCudaSuccess;
  }
  CudaResult EventQuery(void* event) override {
    {
      std::lock_guard lock(cluster_->mu_);
      if (process_->SpoilsCapture("cudaEventQuery")) return kCaptureUnsupported;
      const auto of = FindEvent(event, "asked for");
      if (of == nullptr) return kInvalidHandle;
      if (of->reached == of->recorded) return kCudaSuccess;
    }
    if (process_->on_not_ready) process_->on_not_ready();
    return kCudaNotReady;
  }
  // As on a GPU: what comes from the host is read when the call is made, and the call itself waits
  // if `to` is on the host, or if more comes from there than can be kept for the device.
  CudaResult MemcpyAsync(void* to, const void* from, size_t bytes, void* stream) override {
    std::unique_lock lock(cluster_->mu_);
    const auto* read = static_cast<const std::byte*>(from);
    const auto staged = std::make_shared<std::vector<std::byte>>();
    const bool from_host = !process_->DeviceOf(from);
    if (from_host) staged->assign(read, read + bytes);
    const bool waits = !process_->DeviceOf(to) || (from_host && bytes > kMostStaged);
    const auto done = std::make_shared<bool>(false);
    Push(stream, [=, this](std::unique_lock<std::mutex>* held) {
      cluster_->changed_.wait(
          *held, [&] { return !process_->may_copy || process_->may_copy() || process_->ended_; });
      std::memmove(to, from_host ? staged->data() : from, bytes);
      *done = true;
    });
    if (waits) (void)cluster_->AwaitOrBlame(&lock, "a copy", [&] { return *done; });
    return kCudaSuccess;
  }
  std::string ErrorString(CudaResult result) override {
    if (result == kCudaNoDevice) return "no CUDA-capable device is detected";
    return "fake error " + std::to_string(result);
  }

 private:
  // Null: it was destroyed, which is counted as misuse.
  std::shared_ptr<FakeEvent> FindEvent(const void* event, const char* how) {
    const auto found = process_->events_.find(event);
    if (found != process_->events_.end()) return found->second;
    cluster_->Blame(std::string("an event is ") + how + " after its end");
    return nullptr;
  }
  void Push(void* stream, std::function<void(std::unique_lock<std::mutex>*)> task) {
    static_cast<FakeStream*>(stream)->tasks.push_back(std::move(task));
    cluster_->changed_.notify_all();
  }

  FakeCluster* const cluster_;
  FakeProcess* const process_;
};

std::shared_ptr<CudaApi> MakeFakeCuda(FakeCluster* cluster, FakeProcess* process) {
  return std::make_shared<FakeCuda>(cluster, process);
}

}  // namespace ringmaster::nccl
