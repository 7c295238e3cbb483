#include "collectives/nccl/fake/library/fake_library.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "collectives/nccl/fake/fake_gpu.h"
#include "collectives/nccl/fake/library/file_ring.h"

namespace ringmaster::nccl {
namespace {

// How often this process looks for what other processes have written.
constexpr std::chrono::milliseconds kLook{1};

int NumberOf(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

class Library {
 public:
  static Library& Get() {
    static auto* const library = new Library;
    return *library;
  }
  const Gpu& gpu() {
    if (ended_ && !blamed_.exchange(true)) Note("misuse: a call after the library has ended");
    return gpu_;
  }
  void Hold(void* stream) {
    process_->Enqueue(stream, [this, until = releases_ + 1] { return releases_ >= until; });
  }
  void Release() { ++releases_; }

 private:
  Library() {
    const char* named = std::getenv("RINGMASTER_FAKE_GPU_FOLDER");
    const std::string folder = named == nullptr ? "/tmp" : named;
    const std::string pid = std::to_string(getpid());
    cluster_.id_prefix = pid + ".";
    cluster_.blocking_allowed = NumberOf("RINGMASTER_FAKE_BLOCKING", 0) != 0;
    cluster_.make_ring = [folder](const std::string& key, int size) {
      return std::make_shared<FileRing>(folder, key, size);
    };
    events_ = folder + "/events." + pid;
    cluster_.on_event = [this](const std::string& what) { Note(what); };
    // As CUDA does, which so ends before what has asked for its own end earlier.
    (void)std::atexit([] { Get().ended_ = true; });
    // Made only now, because it asks the cluster for what is set above.
    process_ = new FakeProcess(&cluster_, NumberOf("RINGMASTER_FAKE_NCCL", 23203),
                               NumberOf("RINGMASTER_FAKE_GPUS", 1));
    gpu_ = process_->gpu();
    std::thread([this] {
      while (true) {
        std::this_thread::sleep_for(kLook);
        process_->Notify();
      }
    }).detach();
  }

  void Note(const std::string& what) const {
    std::ofstream(events_, std::ios::app) << what << "\n";
  }

  std::string events_;
  std::atomic<bool> ended_{false}, blamed_{false};
  FakeCluster cluster_;
  FakeProcess* process_ = nullptr;
  Gpu gpu_;
  std::atomic<int> releases_{0};
};

}  // namespace

NcclApi& FakeLibraryNccl() { return *Library::Get().gpu().nccl; }
CudaApi& FakeLibraryCuda() { return *Library::Get().gpu().cuda; }

extern "C" {
void fake_gpu_hold(void* stream) { Library::Get().Hold(stream); }
void fake_gpu_release() { Library::Get().Release(); }
}

}  // namespace ringmaster::nccl
