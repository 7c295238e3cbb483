// The logs of pods on other machines, as their nodes send them: kept in files of the run directory,
// where those of pods on this machine lie, too.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "common/sync/mutex.h"
#include "operator/kubelet/log_chunk.h"
#include "operator/local/server/log_file.h"
#include "operator/local/store/store.h"

namespace ringmaster::local {

class CollectedLogs {
 public:
  CollectedLogs(std::filesystem::path dir, std::shared_ptr<Store> store);

  // Appends a kubelet::LogChunk, if it is the one that comes next; the answer is its status.
  Answer<Json> Take(const Json& body);
  // As FindLog. A container that has started has a log, though nothing of it may have come.
  Answer<LogFile> Find(const std::string& ns, const std::string& pod, const std::string& container);

 private:
  struct Log {
    std::uint64_t next = 0;  // in the node's file
    LogFile file;
  };

  std::filesystem::path FileOf(const std::string& ns, const std::string& pod,
                               const std::string& container) const;

  const std::filesystem::path dir_;
  const std::shared_ptr<Store> store_;
  sync::Mutex mu_;
  std::map<std::string, Log> logs_ GUARDED_BY(mu_);  // by pod uid and container
};

}  // namespace ringmaster::local
