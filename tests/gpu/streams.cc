#include <string>
#include <vector>

#include "tests/gpu/drills.h"
#include "tests/gpu/verdicts.h"

namespace ringmaster::gpu_test {
namespace {

constexpr size_t kCount = 1000, kBytes = kCount * sizeof(float);

// Work of the user's on the rank's stream: long copies, which take a GPU some milliseconds, and at
// their end one of `from` to `to`.
class LongCopies {
 public:
  LongCopies(GpuRank* rank, void* to, const void* from) : rank_(*rank) {
    constexpr size_t kLarge = size_t{32} << 20;
    constexpr int kCopies = 64;
    void *one = rank_.Allocate(kLarge), *other = rank_.Allocate(kLarge);
    Expect(StatusOf(cuda(), cuda()->EventCreate(&ready_), "making an event"));
    for (int i = 0; i < kCopies; ++i) Expect(rank_.stream().Copy(one, other, kLarge));
    Expect(rank_.stream().Copy(to, from, kBytes));
    if (ready_ == nullptr) return;
    Expect(StatusOf(cuda(), cuda()->EventRecord(ready_, rank_.stream().get()), "recording"));
  }
  ~LongCopies() {
    Expect(rank_.Finish());
    if (ready_ != nullptr) (void)cuda()->EventDestroy(ready_);
  }
  LongCopies(const LongCopies&) = delete;
  LongCopies& operator=(const LongCopies&) = delete;
  const void* ready() const { return ready_; }

 private:
  nccl::CudaApi* cuda() const { return rank_.gpu().cuda.get(); }
  void Expect(const Status& status) const { Check(&rank_.board(), status, "long copies"); }

  GpuRank& rank_;
  void* ready_ = nullptr;
};

// A result that was handed over, through the host's memory, is there before the stream has come to
// the operation.
void TryHandOver(GpuRank& r) {
  float* ones = r.Upload(std::vector<float>(kCount, 1));
  float* zeros = r.Upload(std::vector<float>(kCount, 0));
  float* out = r.Upload(std::vector<float>(kCount, 0));
  engine::Retained result, handed;
  Check(&r.board(), r.Execute(r.AskSum(ones, out, kCount), &result), "what is handed over");
  Check(&r.board(), r.HandOver(result, &handed), "handing over");
  const LongCopies busy(&r, out, zeros);
  const auto asked = r.AskSum(ones, out, kCount, busy.ready());
  Check(&r.board(), r.Publish(asked, handed), "a result that was handed over");
  Expect(&r.board(), r.Download<float>(out, kCount),
         std::vector<float>(kCount, static_cast<float>(r.size())),
         "a result that was handed over, and not what the stream wrote before");
}

}  // namespace

void TryStreams(GpuRank& r) {
  float* ones = r.Upload(std::vector<float>(kCount, 1));
  float* in = r.Upload(std::vector<float>(kCount, 0));
  {
    const LongCopies busy(&r, in, ones);
    Check(&r.board(), r.Run(r.AskSum(in, in, kCount, busy.ready())), "an input that comes late");
  }
  Expect(&r.board(), r.Download<float>(in, kCount),
         std::vector<float>(kCount, static_cast<float>(r.size())), "an input that comes late");
  TryHandOver(r);
}

void EnterBesideACommunicator(GpuRank& r, int rank, int size) {
  const auto sum = [&](int ranks) {
    const float* ones = r.Upload(std::vector<float>(kCount, 1));
    float* out = r.Upload(std::vector<float>(kCount, 0));
    const std::string what = "a sum of " + std::to_string(ranks) + " ranks, one after the other";
    Check(&r.board(), r.Run(r.AskSum(ones, out, kCount)), what);
    Expect(&r.board(), r.Download<float>(out, kCount),
           std::vector<float>(kCount, static_cast<float>(ranks)), what);
  };
  if (rank < size - 1) {
    Check(&r.board(), r.Enter(rank, size - 1, 1), "entering a view");
    sum(size - 1);
  }
  Check(&r.board(), r.Enter(rank, size, 2), "entering a view with a joiner");
  sum(size);
}

}  // namespace ringmaster::gpu_test
