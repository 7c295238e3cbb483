// The connections of processes to the sidecars of their pods.
//
// Owner: Pods. Plain data of one schedule; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tests/sim/timeline.h"
#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

// A connection of a process to its pod's sidecar.
struct Stream {
  int pod = 0;
  std::uint32_t life = 0;  // of the sidecar
  WorkerPtr worker;        // null: the launcher's
  bool to_sidecar_open = true, to_process_open = true;
  Micros to_sidecar = 0, to_process = 0;  // each direction keeps its order
  std::multiset<Epoch> views;             // under way to the worker

  // This view has come to the worker.
  void Arrived(Epoch view) {
    if (const auto at = views.find(view); at != views.end()) views.erase(at);
  }
};

class StreamTable {
 public:
  // Its number, never 0.
  std::uint64_t Open(Stream stream) {
    streams_[next_] = std::move(stream);
    return next_++;
  }
  // Null: there is none any more. It lives until another one is closed.
  Stream* Find(std::uint64_t number) {
    const auto at = streams_.find(number);
    return at == streams_.end() ? nullptr : &at->second;
  }
  const Stream* Find(std::uint64_t number) const {
    return const_cast<StreamTable*>(this)->Find(number);
  }
  // What it was; nothing: there is none any more.
  std::optional<Stream> Close(std::uint64_t number) {
    auto closed = streams_.extract(number);
    if (closed.empty()) return std::nullopt;
    return std::move(closed.mapped());
  }
  std::vector<std::uint64_t> OfPod(int pod) const {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, stream] : streams_) {
      if (stream.pod == pod) numbers.push_back(number);
    }
    return numbers;
  }

 private:
  std::map<std::uint64_t, Stream> streams_;
  std::uint64_t next_ = 1;
};

}  // namespace ringmaster::app::sim
