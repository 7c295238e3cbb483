#include "collectives/mpi/fake_mpi.h"

#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "collectives/algorithms/reduce.h"
#include "collectives/element/element.h"

namespace ringmaster::mpi {

// One rank's part in a collective.
struct Part {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::vector<int> sizes;      // of the blocks that it gives; of one, if it gives one
  std::vector<int> at;         // where the blocks that it gets begin; for alltoallv
  std::vector<int> send_at;    // where the blocks that it gives begin; for alltoallv
  std::vector<int> get_sizes;  // of the blocks that it gets
};

struct Collective {
  std::string what;
  std::map<int, Part> parts;  // by place
  std::function<void(std::map<int, Part>*)> run;
  bool done = false;
};

struct FakeComm {
  std::vector<int> ranks;
  std::vector<std::shared_ptr<Collective>> collectives;
  std::vector<size_t> next;  // by place: the number of its next collective
};

}  // namespace ringmaster::mpi

struct rm_mpi_comm {
  std::shared_ptr<ringmaster::mpi::FakeComm> comm;
  int place = 0;
};
struct rm_mpi_request {
  std::shared_ptr<ringmaster::mpi::Collective> collective;
};

namespace ringmaster::mpi {

struct FakeMpiJob::State {
  mutable sync::Mutex mu;
  sync::CondVar changed;
  std::shared_ptr<FakeComm> world GUARDED_BY(mu);
  std::map<std::vector<int>, std::shared_ptr<FakeComm>> groups GUARDED_BY(mu);
  std::map<std::vector<int>, int> in_group GUARDED_BY(mu);  // how many ranks have come
  int waiting GUARDED_BY(mu) = 0;                           // threads in Group()
  bool ended GUARDED_BY(mu) = false;
  bool holds GUARDED_BY(mu) = false;
  std::map<int, Code> fails GUARDED_BY(mu);  // by rank
  Threads threads GUARDED_BY(mu) = RM_MPI_PARALLEL_THREADS;
  bool begun_before GUARDED_BY(mu) = false;
  std::set<int> finished GUARDED_BY(mu);
  int begun GUARDED_BY(mu) = 0;
  int freed GUARDED_BY(mu) = 0;
  size_t largest GUARDED_BY(mu) = 0;
  std::map<int, std::vector<std::string>> calls GUARDED_BY(mu);  // by rank
  // They live as long as the job, because what is given up is never freed by its owner.
  std::vector<std::unique_ptr<rm_mpi_comm>> comms GUARDED_BY(mu);
  std::vector<std::unique_ptr<rm_mpi_request>> requests GUARDED_BY(mu);

  Comm Keep(rm_mpi_comm comm) REQUIRES(mu) {
    comms.push_back(std::make_unique<rm_mpi_comm>(std::move(comm)));
    return comms.back().get();
  }
};

class FakeMpi : public MpiApi {
 public:
  using State = FakeMpiJob::State;
  FakeMpi(std::shared_ptr<State> state, int rank) : state_(std::move(state)), rank_(rank) {}

  std::string loaded() const override { return "the test's MPI"; }
  Code Begin(bool* started, Threads* threads) override {
    sync::MutexLock lock(&state_->mu);
    *started = !state_->begun_before;
    *threads = state_->threads;
    return 0;
  }
  bool Finished() override {
    sync::MutexLock lock(&state_->mu);
    return state_->finished.contains(rank_);
  }
  Code Finish() override {
    sync::MutexLock lock(&state_->mu);
    state_->finished.insert(rank_);
    return 0;
  }
  Code Place(int* rank, int* size) override {
    sync::MutexLock lock(&state_->mu);
    *rank = rank_;
    *size = static_cast<int>(state_->world->ranks.size());
    return 0;
  }
  std::string Explain(Code code) override { return "error " + std::to_string(code); }

  Code DupWorld(Comm* comm, Request* request) override {
    {
      sync::MutexLock lock(&state_->mu);
      *comm = state_->Keep({state_->world, rank_});
    }
    return Post(*comm, "dup", {}, 0, request, [](auto*) {});
  }
  Code Group(Comm, std::span<const int> ranks, int, Comm* out) override {
    const std::vector<int> key(ranks.begin(), ranks.end());
    sync::MutexLock lock(&state_->mu);
    state_->calls[rank_].push_back("group");
    auto& group = state_->groups[key];
    if (group == nullptr) {
      group = std::make_shared<FakeComm>();
      group->ranks = key;
      group->next.resize(key.size());
    }
    const auto made = group;
    ++state_->in_group[key];
    ++state_->waiting;
    ++state_->begun;
    state_->changed.NotifyAll();
    while (!state_->ended &&
           (state_->holds || state_->in_group[key] % static_cast<int>(key.size()) != 0)) {
      state_->changed.Wait(&state_->mu);
    }
    --state_->waiting;
    state_->changed.NotifyAll();
    if (state_->ended) return 99;
    const auto place = std::find(key.begin(), key.end(), rank_) - key.begin();
    *out = state_->Keep({made, static_cast<int>(place)});
    return 0;
  }
  void FreeComm(Comm) override {
    sync::MutexLock lock(&state_->mu);
    ++state_->freed;
  }

  Code Allreduce(Comm comm, const void* in, void* out, int count, rm_dtype dtype, rm_op op,
                 Request* request) override {
    const size_t bytes = static_cast<size_t>(count) * element::Size(dtype);
    return Post(comm, "allreduce", Give(in, out), bytes, request, [=](auto* parts) {
      const std::vector<std::byte> sum = Reduced(*parts, static_cast<size_t>(count), dtype, op);
      for (auto& [place, part] : *parts) std::memcpy(part.out, sum.data(), bytes);
    });
  }
  Code ReduceScatter(Comm comm, const void* in, void* out, std::span<const int> counts,
                     rm_dtype dtype, rm_op op, Request* request) override {
    const std::vector<int> kept(counts.begin(), counts.end());
    size_t total = 0;
    for (int count : kept) total += static_cast<size_t>(count);
    const size_t element = element::Size(dtype);
    return Post(comm, "reduce_scatter", Give(in, out), total * element, request, [=](auto* parts) {
      const std::vector<std::byte> sum = Reduced(*parts, total, dtype, op);
      size_t at = 0;
      for (auto& [place, part] : *parts) {
        const size_t bytes = static_cast<size_t>(kept[static_cast<size_t>(place)]) * element;
        if (bytes > 0) std::memcpy(part.out, sum.data() + at, bytes);
        at += bytes;
      }
    });
  }
  Code Allgatherv(Comm comm, const void* send, int send_bytes, void* recv,
                  std::span<const int> bytes, std::span<const int> at, Request* request) override {
    Part part = Give(send, recv);
    part.sizes = {send_bytes};
    const std::vector<int> offsets(at.begin(), at.end());
    size_t total = 0;
    for (int each : bytes) total += static_cast<size_t>(each);
    return Post(comm, "allgatherv", part, total, request, [offsets](auto* parts) {
      for (auto& [to, gets] : *parts) {
        for (auto& [from, gives] : *parts) {
          if (gives.sizes[0] == 0) continue;
          std::memcpy(gets.out + offsets[static_cast<size_t>(from)], gives.in,
                      static_cast<size_t>(gives.sizes[0]));
        }
      }
    });
  }
  Code Broadcast(Comm comm, void* data, int bytes, int root, Request* request) override {
    return Post(comm, "broadcast", Give(data, data), static_cast<size_t>(bytes), request,
                [=](auto* parts) {
                  for (auto& [place, part] : *parts) {
                    if (place != root)
                      std::memcpy(part.out, parts->at(root).in, static_cast<size_t>(bytes));
                  }
                });
  }
  Code Alltoallv(Comm comm, const void* send, std::span<const int> send_bytes,
                 std::span<const int> send_at, void* recv, std::span<const int> recv_bytes,
                 std::span<const int> recv_at, Request* request) override {
    Part part = Give(send, recv);
    part.sizes.assign(send_bytes.begin(), send_bytes.end());
    part.send_at.assign(send_at.begin(), send_at.end());
    part.get_sizes.assign(recv_bytes.begin(), recv_bytes.end());
    part.at.assign(recv_at.begin(), recv_at.end());
    size_t total = 0;
    for (int each : send_bytes) total += static_cast<size_t>(each);
    return Post(comm, "alltoallv", part, total, request, [](auto* parts) {
      for (auto& [to, gets] : *parts) {
        for (auto& [from, gives] : *parts) {
          const size_t k = static_cast<size_t>(to), j = static_cast<size_t>(from);
          if (gives.sizes[k] == 0) continue;
          std::memcpy(gets.out + gets.at[j], gives.in + gives.send_at[k],
                      static_cast<size_t>(gives.sizes[k]));
        }
      }
    });
  }
  Code Barrier(Comm comm, Request* request) override {
    return Post(comm, "barrier", {}, 0, request, [](auto*) {});
  }
  Code Test(Request request, bool* done) override {
    sync::MutexLock lock(&state_->mu);
    if (const auto fails = state_->fails.find(rank_); fails != state_->fails.end()) {
      const Code code = fails->second;
      state_->fails.erase(fails);
      *done = true;
      return code;
    }
    *done = request->collective->done;
    return 0;
  }

 private:
  static Part Give(const void* in, void* out) {
    Part part;
    part.in = static_cast<const std::byte*>(in);
    part.out = static_cast<std::byte*>(out);
    return part;
  }
  static std::vector<std::byte> Reduced(const std::map<int, Part>& parts, size_t count,
                                        rm_dtype dtype, rm_op op) {
    std::vector<const void*> sources;
    for (const auto& [place, part] : parts) sources.push_back(part.in);
    std::vector<std::byte> sum(count * element::Size(dtype));
    if (count > 0) algorithms::Reduce(sum.data(), sources, count, dtype, op);
    return sum;
  }
  // The last rank that begins a collective makes the results of all.
  Code Post(Comm comm, const std::string& what, Part part, size_t bytes, Request* request,
            std::function<void(std::map<int, Part>*)> run) {
    sync::MutexLock lock(&state_->mu);
    FakeComm& on = *comm->comm;
    const size_t place = static_cast<size_t>(comm->place), number = on.next[place]++;
    if (on.collectives.size() <= number) on.collectives.push_back(std::make_shared<Collective>());
    Collective& collective = *on.collectives[number];
    if (!collective.what.empty() && collective.what != what) return 98;
    collective.what = what;
    collective.parts[comm->place] = std::move(part);
    if (collective.parts.size() == on.ranks.size() && !state_->holds) {
      run(&collective.parts);
      collective.done = true;
    }
    state_->requests.push_back(std::make_unique<rm_mpi_request>());
    state_->requests.back()->collective = on.collectives[number];
    *request = state_->requests.back().get();
    state_->calls[rank_].push_back(what);
    state_->largest = std::max(state_->largest, bytes);
    ++state_->begun;
    state_->changed.NotifyAll();
    return 0;
  }

  const std::shared_ptr<State> state_;
  const int rank_;
};

FakeMpiJob::FakeMpiJob(int size) : state_(std::make_shared<State>()) {
  sync::MutexLock lock(&state_->mu);
  state_->world = std::make_shared<FakeComm>();
  for (int rank = 0; rank < size; ++rank) state_->world->ranks.push_back(rank);
  state_->world->next.resize(static_cast<size_t>(size));
}

FakeMpiJob::~FakeMpiJob() {
  sync::MutexLock lock(&state_->mu);
  state_->ended = true;
  state_->changed.NotifyAll();
  while (state_->waiting > 0) state_->changed.Wait(&state_->mu);
}

std::unique_ptr<MpiApi> FakeMpiJob::At(int rank) { return std::make_unique<FakeMpi>(state_, rank); }
void FakeMpiJob::Hold() {
  sync::MutexLock lock(&state_->mu);
  state_->holds = true;
}
void FakeMpiJob::FailAt(int rank, Code code) {
  sync::MutexLock lock(&state_->mu);
  state_->fails[rank] = code;
}
void FakeMpiJob::SetThreads(Threads threads) {
  sync::MutexLock lock(&state_->mu);
  state_->threads = threads;
}
void FakeMpiJob::SetBegun() {
  sync::MutexLock lock(&state_->mu);
  state_->begun_before = true;
}
void FakeMpiJob::SetFinished(int rank) {
  sync::MutexLock lock(&state_->mu);
  state_->finished.insert(rank);
}
void FakeMpiJob::AwaitBegun(int count) {
  sync::MutexLock lock(&state_->mu);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (state_->begun < count) {
    if (!state_->changed.WaitUntil(&state_->mu, deadline)) return;
  }
}
int FakeMpiJob::begun() const {
  sync::MutexLock lock(&state_->mu);
  return state_->begun;
}
size_t FakeMpiJob::largest() const {
  sync::MutexLock lock(&state_->mu);
  return state_->largest;
}
std::vector<std::string> FakeMpiJob::calls(int rank) const {
  sync::MutexLock lock(&state_->mu);
  const auto found = state_->calls.find(rank);
  return found == state_->calls.end() ? std::vector<std::string>() : found->second;
}
int FakeMpiJob::freed() const {
  sync::MutexLock lock(&state_->mu);
  return state_->freed;
}
std::set<int> FakeMpiJob::finished() const {
  sync::MutexLock lock(&state_->mu);
  return state_->finished;
}

}  // namespace ringmaster::mpi
