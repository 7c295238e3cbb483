// The membership state of this pod on disk (RINGMASTER_STATE_DIR, memory): what a restarted sidecar
// goes on from.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "common/membership/member.h"

namespace ringmaster::app {

class StateFile {
 public:
  // `directory` must exist. The file carries the pod's uid: a directory that is used again gives no
  // stale state.
  StateFile(const std::string& directory, std::string pod_uid);

  // The stored state; a fresh one, with a new incarnation, if there is none. A file that can't be
  // read is an error only when it can't be replaced: it is as good as lost, and a lost file is a
  // new incarnation.
  tl::expected<membership::PersistentState, std::string> Load(uint64_t new_incarnation);

  // Atomic: a reader, also after a crash of this process, sees the old state or the new one.
  tl::expected<void, std::string> Store(const membership::PersistentState& state);

 private:
  const std::string path_;
  const std::string pod_uid_;
};

}  // namespace ringmaster::app
