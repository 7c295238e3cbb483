#include "operator/cli/local_mode.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kSpec[] = "/spec/worker/template/spec";
constexpr char kSpecPath[] = "spec.worker.template.spec";

// "securityContext" may be there and empty.
bool Says(const Json& owner, const char* name) {
  const Json& value = fields::Member(owner, name);
  return !value.is_null() && !(value.is_structured() && value.empty());
}

void AddIgnored(const Json& owner, const std::string& path, std::vector<const char*> names,
                std::vector<std::string>* ignored) {
  for (const char* name : names)
    if (Says(owner, name)) ignored->push_back(path + "." + name);
}

}  // namespace

Outcome<ClaimFolders> ParseClaimFolders(const std::vector<std::string>& words,
                                        const fs::path& cwd) {
  ClaimFolders folders;
  for (const std::string& word : words) {
    const size_t sign = word.find('=');
    if (sign == 0 || sign == std::string::npos || sign + 1 == word.size())
      return Fail(ExitCode::kUsage,
                  fmt::format("--volume {}: wanted is CLAIM=DIR, the name of a claim in the "
                              "manifest and a folder of yours",
                              word));
    const fs::path folder = (cwd / word.substr(sign + 1)).lexically_normal();
    std::error_code error;
    if (!fs::is_directory(folder, error))
      return Fail(ExitCode::kUsage,
                  fmt::format("--volume {}: there is no folder {}", word, folder.string()));
    if (!folders.emplace(word.substr(0, sign), folder).second)
      return Fail(ExitCode::kUsage,
                  fmt::format("--volume {}: this claim has a folder already", word));
  }
  return folders;
}

Outcome<void> GiveFolders(const ClaimFolders& folders, std::vector<Json>* jobs) {
  std::set<std::string> claims;
  for (Json& job : *jobs) {
    const Json::json_pointer at(std::string(kSpec) + "/volumes");
    if (!fields::At(job, at.to_string().c_str()).is_array()) continue;
    for (Json& volume : job[at]) {
      const std::string claim = fields::TextAt(volume, "/persistentVolumeClaim/claimName");
      const auto folder = folders.find(claim);
      if (claim.empty()) continue;
      claims.insert(claim);
      if (folder == folders.end()) continue;
      volume.erase("persistentVolumeClaim");
      volume["hostPath"] = {{"path", folder->second.string()}, {"type", "Directory"}};
    }
  }
  for (const auto& [claim, folder] : folders) {
    if (claims.contains(claim)) continue;
    std::string known;
    for (const std::string& one : claims) known += (known.empty() ? "" : ", ") + one;
    return Fail(ExitCode::kUsage,
                fmt::format("--volume {}={}: no manifest has a persistentVolumeClaim with this "
                            "claimName; there are: {}",
                            claim, folder.string(), known.empty() ? "none" : known));
  }
  return {};
}

std::vector<std::string> IgnoredFields(const Json& job) {
  std::vector<std::string> ignored;
  const Json& spec = fields::At(job, kSpec);
  AddIgnored(spec, kSpecPath, {"activeDeadlineSeconds", "securityContext"}, &ignored);
  for (const char* list : {"initContainers", "containers"}) {
    const Json& containers = fields::List(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const std::string path = fmt::format("{}.{}[{}]", kSpecPath, list, i);
      AddIgnored(containers[i], path, {"lifecycle", "livenessProbe", "securityContext"}, &ignored);
    }
  }
  return ignored;
}

}  // namespace ringmaster::cli
