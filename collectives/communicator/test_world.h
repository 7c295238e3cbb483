// For tests: ranks as threads, each with an endpoint and a communicator, and a function that all of
// them run at once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ringmaster/communicator.h"

namespace ringmaster::testing {

inline constexpr char kTestKey[] = "the ring's key has 32 bytes: all";

enum class Paths { kShm, kTcp, kMixed, kPairs, kEncrypted };

inline std::string PathsName(Paths paths) {
  switch (paths) {
    case Paths::kShm:
      return "Shm";
    case Paths::kTcp:
      return "Tcp";
    case Paths::kMixed:
      return "Mixed";
    case Paths::kPairs:
      return "Pairs";
    case Paths::kEncrypted:
      return "Encrypted";
  }
  return "";
}

class World {
 public:
  World(int size, Paths paths, size_t arena_bytes = 0, const std::string& key = kTestKey)
      : paths_(paths), endpoints_(static_cast<size_t>(size)) {
    for (auto& endpoint : endpoints_) {
      Endpoint::Options options;
      options.job = "test-job";
      options.key = key;
      options.arena_bytes = arena_bytes;
      options.shared_memory = !OverTcp();
      options.encrypt = paths == Paths::kEncrypted;
      Status status = Endpoint::Create(options, &endpoint);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    for (size_t i = 0; i < endpoints_.size(); ++i) members_.push_back(i);
  }

  size_t size() const { return members_.size(); }
  Communicator& at(size_t rank) { return *communicators_[rank]; }
  Endpoint* endpoint(size_t rank) { return endpoints_[members_[rank]].get(); }

  CommunicatorOptions OptionsFor(size_t rank, uint64_t epoch) {
    CommunicatorOptions options;
    options.epoch = epoch;
    options.rank = static_cast<int>(rank);
    for (size_t member : members_) options.peers.push_back(AddressOf(member, members_[rank]));
    // Mixed: every third rank shares no memory, the others do.
    options.allow_shm = !OverTcp() && !(paths_ == Paths::kMixed && members_[rank] % 3 == 1);
    return options;
  }

  // Builds the view of the endpoints named by `members` (all by default).
  void Build(uint64_t epoch, std::vector<size_t> members = {}) {
    if (!members.empty()) members_ = std::move(members);
    communicators_.clear();
    communicators_.resize(members_.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      threads.emplace_back([this, rank, epoch] {
        Status status =
            Communicator::Create(endpoint(rank), OptionsFor(rank, epoch), &communicators_[rank]);
        EXPECT_TRUE(status.ok()) << "rank " << rank << ": " << status.message();
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void Run(const std::function<void(int rank, Communicator& communicator)>& body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < members_.size(); ++rank) {
      if (communicators_[rank] == nullptr) continue;
      threads.emplace_back([&, rank] {
        body(static_cast<int>(rank), *communicators_[rank]);
        // A rank that gave up must not leave the others waiting for it.
        if (::testing::Test::HasFailure() && communicators_[rank] != nullptr) {
          communicators_[rank]->Abort("the test has failed");
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }

  void Close(size_t rank) { communicators_[rank].reset(); }

 private:
  bool OverTcp() const { return paths_ == Paths::kTcp || paths_ == Paths::kEncrypted; }
  // Pairs: two ranks in each pod. The socket name of a rank in another pod leads nowhere, as in
  // another network namespace.
  PeerEndpoint AddressOf(size_t member, size_t seen_from) const {
    PeerEndpoint address = endpoints_[member]->Address();
    if (paths_ != Paths::kPairs) return address;
    address.pod = static_cast<int>(member / 2);
    if (member / 2 != seen_from / 2) address.shm = "nobody-listens-here";
    return address;
  }

  const Paths paths_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::vector<size_t> members_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace ringmaster::testing
