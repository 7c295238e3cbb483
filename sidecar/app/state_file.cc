#include "sidecar/app/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/fields/parse.h"
#include "common/membership/state_json.h"

namespace ringmaster::app {
namespace {

using nlohmann::json;

tl::unexpected<std::string> Failure(const std::string& what, const std::string& path) {
  return tl::unexpected("RINGMASTER_STATE_DIR: cannot " + what + " " + path + ": " +
                        std::strerror(errno));
}

}  // namespace

StateFile::StateFile(const std::string& directory, std::string pod_uid)
    : path_(directory + "/membership.json"), pod_uid_(std::move(pod_uid)) {}

tl::expected<membership::PersistentState, std::string> StateFile::Load(uint64_t new_incarnation) {
  std::ifstream in(path_, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  json file = fields::ParseOrDiscard(text);
  if (file.is_object() && file.value("podUid", json()) == pod_uid_ && file.contains("state")) {
    auto state = membership::DecodeState(file["state"].dump());
    if (state) return *state;
  }
  membership::PersistentState fresh;
  fresh.incarnation = new_incarnation;
  auto stored = Store(fresh);
  if (!stored) return tl::unexpected(stored.error());
  return fresh;
}

// Memory, so no fsync: the machine's death loses the pod anyway, and this process's death loses
// nothing.
tl::expected<void, std::string> StateFile::Store(const membership::PersistentState& state) {
  const std::string temporary = path_ + ".new";
  std::string text = "{\"podUid\":" + json(pod_uid_).dump() +
                     ",\"state\":" + membership::EncodeState(state) + "}\n";
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return Failure("write", temporary);
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      auto failure = Failure("write", temporary);
      close(fd);
      return failure;
    }
    done += static_cast<size_t>(n);
  }
  close(fd);
  if (std::rename(temporary.c_str(), path_.c_str()) != 0) return Failure("replace", path_);
  return {};
}

}  // namespace ringmaster::app
