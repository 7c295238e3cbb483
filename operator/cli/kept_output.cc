#include "operator/cli/kept_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "common/fields/fields.h"
#include "operator/api/labels.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

tl::unexpected<Failure> CannotBeWritten(const fs::path& dir, const std::string& why) {
  return Fail(ExitCode::kUsage,
              fmt::format("--output-filename {}: can't be written: {}", dir.string(), why));
}

// Removes only files that a run creates, in folders that a run creates: the directory may contain
// others.
void RemoveKept(const fs::path& dir) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(dir, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("rank.") && name != "standby") continue;
    for (const char* file : {"stdout", "stderr"}) fs::remove(entry.path() / file, ignored);
    fs::remove(entry.path(), ignored);  // only if it is empty
  }
}

Outcome<void> MakeReady(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) return CannotBeWritten(dir, error.message());
  if (access(dir.c_str(), W_OK | X_OK) != 0) return CannotBeWritten(dir, std::strerror(errno));
  return {};
}

}  // namespace

Outcome<void> PrepareOutput(const fs::path& dir, std::vector<Json>* jobs) {
  if (dir.empty()) return {};
  std::error_code error;
  const fs::path root = fs::absolute(dir, error).lexically_normal();
  for (Json& job : *jobs) {
    const fs::path own = jobs->size() == 1 ? root : root / fields::TextAt(job, "/metadata/name");
    if (auto ready = MakeReady(own); !ready) return ready;
    job["metadata"]["annotations"][api::kLocalOutputDirAnnotation] = own.string();
  }
  return {};
}

void RemoveEarlierOutput(const std::vector<Json>& jobs) {
  for (const Json& job : jobs) {
    const std::string dir =
        fields::Text(fields::At(job, "/metadata/annotations"), api::kLocalOutputDirAnnotation);
    if (!dir.empty()) RemoveKept(dir);
  }
}

}  // namespace ringmaster::cli
