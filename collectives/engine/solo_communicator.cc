#include "collectives/engine/solo_communicator.h"

#include <atomic>
#include <cstring>

#include "collectives/engine/dtype.h"

namespace ringmaster::engine {
namespace {

class SoloCommunicator : public Communicator {
 public:
  explicit SoloCommunicator(uint64_t epoch) : epoch_(epoch) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  uint64_t epoch() const override { return epoch_; }

  Status Allreduce(const void* in, void* out, size_t count, rm_dtype dtype, rm_op) override {
    return Copy(in, out, count * DtypeSize(dtype));
  }
  Status Allgatherv(const void* send, void* recv, std::span<const size_t> bytes) override {
    return Copy(send, recv, bytes[0]);
  }
  Status Broadcast(void*, size_t, int) override { return Check(); }
  Status Barrier() override { return Check(); }
  void Abort(const std::string&) override { aborted_ = true; }
  const char* PathTo(int) const override { return "shm"; }
  std::span<std::byte> ArenaBuffer(size_t) override { return {}; }

 private:
  Status Check() const {
    return aborted_ ? Status(RM_ERR_EPOCH_MOVED, "the view was aborted") : Status();
  }
  Status Copy(const void* from, void* to, size_t bytes) const {
    if (from != to && bytes > 0 && !aborted_) std::memcpy(to, from, bytes);
    return Check();
  }

  const uint64_t epoch_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

std::unique_ptr<Communicator> MakeSoloCommunicator(uint64_t epoch) {
  return std::make_unique<SoloCommunicator>(epoch);
}

}  // namespace ringmaster::engine
