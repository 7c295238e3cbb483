// Reads the output of pods' workers while they print it, with a thread for each pod.
//
// Thread rule: any thread; lines are passed on from other threads.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

class PodOutputs {
 public:
  using OnLine =
      std::function<void(const std::string& ns, const std::string& pod, std::string line)>;

  PodOutputs(std::shared_ptr<kube::KubeApi> api, OnLine on_line);
  ~PodOutputs();

  // Follows the pod's log from its beginning. Returns false if it does so already, or after
  // Finish(); a new pod with the same name (another `uid`) is followed as well.
  bool Follow(const std::string& ns, const std::string& pod, const std::string& uid);
  // Waits until all these containers have ended and their logs are read, but at most for `quiet`
  // since the last text and for `most` in total; the time does not count in which somebody waits
  // for a line to be taken, or in which a log that was cut is read up to there again. Afterwards no
  // line is passed on any more.
  void Finish(std::chrono::milliseconds quiet, std::chrono::milliseconds most);
  // Finish() waits no longer.
  void GiveUp();
  // The pods whose log was cut and could not be read to its end, since this was asked.
  std::vector<std::string> TakeCut();

 private:
  // The log of one pod, and how much of it was read.
  struct Source {
    std::string ns, pod, uid;
    size_t seen = 0;
    size_t skip = 0;  // of what comes next: it was read before
    int in_vain = 0;  // streams that brought nothing new, one after the other
  };

  // The readers that have ended, to be joined without the lock. A map entry says that their pods
  // are not to be followed again.
  std::vector<std::jthread> TakeEnded() REQUIRES(mu_);
  void Read(std::stop_token stop, Source source);
  // Returns what is new in it.
  std::string_view NoteText(Source* source, std::string_view text);
  // After a stream of its log. False: it is read, or can't be read any further.
  bool AwaitNextStream(const Source& source, bool whole, const std::stop_token& stop);

  const std::shared_ptr<kube::KubeApi> api_;
  const OnLine on_line_;
  sync::Mutex mu_;
  sync::CondVar ended_;
  size_t reading_ GUARDED_BY(mu_) = 0;
  size_t passing_on_ GUARDED_BY(mu_) = 0;  // readers
  std::chrono::steady_clock::time_point last_text_ GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point last_skipped_ GUARDED_BY(mu_);
  bool given_up_ GUARDED_BY(mu_) = false;
  bool finished_ GUARDED_BY(mu_) = false;
  std::vector<std::string> cut_ GUARDED_BY(mu_);
  std::vector<std::string> ended_readers_ GUARDED_BY(mu_);
  // Last member: the threads use the others.
  std::map<std::string, std::jthread> readers_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::cli
