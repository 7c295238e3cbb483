// The operator of the simulated job: the process that runs, the one before it, which may take part
// a little longer than it should, what reaches them and when they look at the job. What they do is
// the product's (operator_process.h).
//
// Owner: World. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "operator/runtime/clock.h"
#include "tests/sim/api_server.h"
#include "tests/sim/journal.h"
#include "tests/sim/network.h"
#include "tests/sim/operator_process.h"
#include "tests/sim/simulation.h"
#include "tests/sim/timeline.h"

namespace ringmaster::app::sim {

// Simulated time, as the operator and the API server read it.
runtime::Clock OperatorClock(const Timeline* time, Random* random);

class Operators {
 public:
  // All of them outlive it.
  struct Parts {
    const Options& options;
    Timeline& time;
    Random& random;
    Network& network;
    Journal& journal;
    ApiServer& api;
    OperatorProcess::Send send;  // a notice to a sidecar
  };
  explicit Operators(Parts parts) : parts_(std::move(parts)) {}

  // Unless one runs.
  void Start();
  // The process ends; for `away` there is none. `overlaps`: it takes part a little longer.
  void Stop(Micros away, bool overlaps);
  bool running() const { return current_ != nullptr; }
  // It has heard something: it looks at the job when that is due.
  void Wake();
  // Its watch tells it, a little later.
  void Tell(const kube::Resource& resource, const Change& change);
  // Until then its calls to the API server may fail.
  void FailCalls(Micros until) { calls_fail_until_ = until; }

  // While one runs. No answer: it has none.
  std::optional<std::string> AskRecord(const std::string& message);

  // ---- Streams of sidecars
  std::uint64_t OpenStream(int pod);
  int PodOf(std::uint64_t stream) const { return streams_.at(stream); }
  // The process that runs has heard of this stream.
  bool Has(std::uint64_t stream) const { return running() && current_->Has(stream); }
  // While one runs. Empty, or why it refuses the report and ends the stream.
  std::string Take(std::uint64_t stream, const v1::SidecarReport& report);
  // The operator's end of the stream finds out; `at_once`: the other end could say so.
  void LoseStream(std::uint64_t stream, bool at_once);

 private:
  void Look(OperatorProcess* process);
  CallFate FateOfCall();

  const Parts parts_;
  std::unique_ptr<OperatorProcess> current_;  // null: none runs
  std::unique_ptr<OperatorProcess> former_;
  std::uint32_t life_ = 0;  // rises when a process begins and when it ends
  Micros watch_ = 0;        // events keep their order
  std::optional<Micros> look_at_;
  std::uint64_t look_number_ = 0;
  Micros calls_fail_until_ = 0;
  std::map<std::uint64_t, int> streams_;  // whose they are
  std::uint64_t next_stream_ = 1;
};

}  // namespace ringmaster::app::sim
