// What a pod that joins is told of the training before it came. Its sidecar asks the sidecar of
// another pod for what that one remembers, a page at a time, the newest first; and it answers such
// questions itself. It begins when a view has stood for a while. Nothing waits for the answers: if
// they don't come, the pod remembers less.
//
// Thread rule: the sidecar's loop only; time is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/membership/view.h"
#include "sidecar/app/worker_process.h"

namespace ringmaster::app {

class TrainingHistory;

class HistoryHandover {
 public:
  static constexpr std::size_t kMostBytes = 1 << 20;  // that a pod takes, of all pages
  static constexpr std::size_t kMostPage = 128 << 10;
  static constexpr int kMostTries = 6;
  static constexpr std::chrono::milliseconds kQuiet{500};      // after a view
  static constexpr std::chrono::milliseconds kPatience{3000};  // for a page
  static constexpr std::chrono::milliseconds kAgain{2000};     // before another pod is asked

  // To another sidecar. It may be lost.
  using Send = std::function<void(const std::string& pod, const std::string& address,
                                  const std::string& body)>;

  // `send` null: nobody is asked (for tests).
  HistoryHandover(std::string self, TrainingHistory* history, Send send);

  // This pod is in the view. `begins`: so does the job, and there is nothing to be told.
  void Entered(const membership::View& view, bool begins, SteadyTime now);
  void Tick(SteadyTime now, bool view_changes);
  void OnMessage(const std::string& body, const std::string& from, SteadyTime now);

  // It has all that there is to be had.
  bool complete() const { return stage_ == Stage::kComplete; }

 private:
  enum class Stage { kOutside, kAsks, kComplete };
  using Json = nlohmann::json;

  void Ask(SteadyTime now);
  void OnAsk(const Json& ask, const membership::Pod& from);
  void OnPage(const Json& page, SteadyTime now);
  void TryAnother(SteadyTime now);
  void Complete();

  const std::string self_;
  TrainingHistory* const history_;
  const Send send_;
  Stage stage_ = Stage::kOutside;
  std::vector<membership::Pod> others_;  // of the newest view
  std::vector<membership::Pod> donors_;  // those of them that were there before it
  std::string asked_;                    // whose page is waited for; empty: nobody's
  SteadyTime next_{};                    // not before; while somebody is asked: no longer than
  int tries_ = 0;
  std::size_t bytes_ = 0;
  int64_t before_unix_ms_ = std::numeric_limits<int64_t>::max();
  membership::Epoch before_epoch_ = 0;
};

}  // namespace ringmaster::app
