#include "operator/cli/manifest.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/api/labels.h"
#include "operator/cli/command_job.h"
#include "operator/kube/file.h"
#include "operator/kube/yaml.h"

namespace ringmaster::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr size_t kLongestName = 40;

bool IsYaml(const fs::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml" || file.extension() == ".json";
}

// For the end of an error: what would run `word` if it is meant as a command.
std::string AsCommand(const std::string& word) {
  return fmt::format("to run it as a command type `ringmaster run -np N {}`", word);
}

// Whether `file` is a program. What has the name of a manifest is none: there are file systems on
// which every file can be executed.
bool IsProgram(const fs::path& file) { return !IsYaml(file) && access(file.c_str(), X_OK) == 0; }

// As a shell finds it: a name without a folder is looked for in PATH.
std::string Typed(const fs::path& program) {
  return (program.has_parent_path() ? "" : "./") + program.string();
}

// The files for `path`; if there are none, an error was added.
std::vector<fs::path> Expand(const fs::path& path, std::vector<std::string>* errors) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (error || !fs::exists(status)) {
    errors->push_back(fmt::format("{}: {}{}", path.string(),
                                  error ? error.message() : "No such file or directory",
                                  IsYaml(path) ? "" : "; " + AsCommand(path.string())));
    return {};
  }
  if (fs::is_regular_file(status) && IsProgram(path)) {
    errors->push_back(fmt::format("{}: this is a program and no manifest; {}", path.string(),
                                  AsCommand(Typed(path))));
    return {};
  }
  if (!fs::is_directory(status)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;  // of a link that leads to itself, say: that is no manifest
    if (at->is_regular_file(unknown) && IsYaml(at->path())) files.push_back(at->path());
  }
  if (error)
    errors->push_back(fmt::format("{}: {}", path.string(), error.message()));
  else if (files.empty())
    errors->push_back(fmt::format("{}: the folder has no *.yaml", path.string()));
  std::sort(files.begin(), files.end());
  return files;
}

void ReadJob(const fs::path& file, Json document, std::vector<Json>* jobs,
             std::vector<std::string>* errors) {
  const std::string kind = fields::Text(document, "kind");
  if (document.is_object() && kind != api::kKind) {
    errors->push_back(fmt::format("{}: kind: \"{}\" can't be run: it has to be {}", file.string(),
                                  kind, api::kKind));
    return;
  }
  auto job = api::ParseHorovodJob(document);
  if (!job) {
    for (const api::FieldError& wrong : job.error())
      errors->push_back(fmt::format("{}: {}", file.string(), wrong.ToString()));
    return;
  }
  std::error_code ignored;
  Json& metadata = document["metadata"];
  if (!metadata.contains("namespace")) metadata["namespace"] = "default";
  Json& annotations = metadata["annotations"];
  if (!annotations.contains(api::kLocalWorkingDirAnnotation))
    annotations[api::kLocalWorkingDirAnnotation] =
        fs::absolute(file, ignored).parent_path().string();
  jobs->push_back(std::move(document));
}

// The first line that is indented with a tab, counted from 1.
std::optional<int> LineWithTab(const std::string& text) {
  int number = 1;
  bool indent = true;
  for (const char c : text) {
    if (c == '\t' && indent) return number;
    indent = c == '\n' || (indent && c == ' ');
    number += c == '\n' ? 1 : 0;
  }
  return std::nullopt;
}

void ReadFile(const fs::path& file, std::vector<Json>* jobs, std::vector<std::string>* errors) {
  const auto text = kube::ReadFile(file);
  if (!text) {
    errors->push_back(fmt::format("{}: can't be read: {}", file.string(), text.error().message()));
    return;
  }
  auto documents = kube::YamlToJson(*text);
  if (!documents) {
    const auto tab = LineWithTab(*text);
    errors->push_back(
        fmt::format("{}: {}", file.string(), documents.error()) +
        (tab ? fmt::format("; line {} is indented with a tab: YAML takes spaces", *tab) : ""));
    return;
  }
  if (documents->empty()) errors->push_back(fmt::format("{}: the file is empty", file.string()));
  for (Json& document : *documents) ReadJob(file, std::move(document), jobs, errors);
}

void RefuseTwins(const std::vector<Json>& jobs, std::vector<std::string>* errors) {
  std::set<std::string> names;
  for (const Json& job : jobs) {
    std::string name = job["metadata"].value("name", "");
    if (!names.insert(job["metadata"].value("namespace", "") + "/" + name).second)
      errors->push_back(fmt::format("metadata.name: two jobs are called \"{}\"", name));
  }
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

}  // namespace

Outcome<std::vector<Json>> LoadManifests(const std::vector<fs::path>& paths) {
  std::vector<Json> jobs;
  std::vector<std::string> errors;
  for (const fs::path& path : paths)
    for (const fs::path& file : Expand(path, &errors)) ReadFile(file, &jobs, &errors);
  RefuseTwins(jobs, &errors);
  if (!errors.empty()) return Fail(ExitCode::kUsage, Lines(errors));
  return jobs;
}

std::string NameForCommand(const std::vector<std::string>& command) {
  std::string word = command.empty() ? "" : command.front();
  for (const std::string& candidate : command) {
    if (fs::path(candidate).extension() != ".py") continue;
    word = candidate;
    break;
  }
  std::string name;
  for (unsigned char c : fs::path(word).stem().string()) {
    if (std::isalnum(c))
      name += static_cast<char>(std::tolower(c));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name.resize(std::min(name.size(), kLongestName));
  while (!name.empty() && name.back() == '-') name.pop_back();
  bool letter_first = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front()));
  return letter_first ? name : name.empty() ? "job" : "job-" + name;
}

namespace {

// Reports a command that is one word with blanks in it. A program of such a name is given by its
// path.
Outcome<void> CheckQuotes(const RunOptions& options, const fs::path& cwd) {
  if (options.command.size() != 1) return {};
  const std::string& word = options.command.front();
  std::error_code error;
  if (word.find(' ') == std::string::npos || fs::exists(cwd / word, error)) return {};
  return Fail(ExitCode::kUsage,
              fmt::format("there is no program \"{0}\"; did you mean `ringmaster run -np {1} {0}`, "
                          "without quotes?",
                          word, options.np));
}

// Reports "train.py" without an interpreter.
Outcome<void> CheckScript(const RunOptions& options, const fs::path& cwd) {
  const fs::path script = options.command.empty() ? "" : options.command.front();
  std::error_code error;
  if (script.extension() != ".py" || !fs::is_regular_file(cwd / script, error)) return {};
  const bool named = script.has_parent_path();  // otherwise it is looked up in PATH
  if (named && access((cwd / script).c_str(), X_OK) == 0) return {};
  return Fail(
      ExitCode::kUsage,
      fmt::format("{0} can't be run by itself; did you mean `ringmaster run -np {1} python3 "
                  "{0}`?",
                  script.string(), options.np));
}

}  // namespace

Outcome<Json> JobForCommand(const RunOptions& options, const fs::path& cwd) {
  if (auto ok = CheckQuotes(options, cwd); !ok) return tl::unexpected(ok.error());
  if (auto ok = CheckScript(options, cwd); !ok) return tl::unexpected(ok.error());
  const bool range = options.min_np > 0 || options.max_np > 0;
  Layout layout{.slots_per_pod = range ? 1 : options.np, .pods = range ? options.np : 1};
  if (!options.hosts.empty()) layout = LayOut(options.hosts, options.np, range);
  Json container = {
      {"name", api::kWorkerContainer}, {"image", kImageOfCommand}, {"command", options.command}};
  Json pod = {{"containers", Json::array()}};
  if (!options.carried.empty()) {
    // RINGMASTER_MOUNT_CARRIED has its folder, because no path is the same on every machine.
    container["volumeMounts"].push_back(
        {{"name", "carried"}, {"mountPath", "/var/lib/ringmaster/carried"}});
    pod["volumes"].push_back({{"name", "carried"}, {"secret", {{"secretName", kCarriedSecret}}}});
  }
  pod["containers"].push_back(container);
  Json spec = {{"slotsPerWorker", layout.slots_per_pod},
               {"elasticPolicy",
                // A plain script on several hosts must not train with only some of its ranks.
                {{"minReplicas", range ? std::max(1, options.min_np) : layout.pods},
                 {"maxReplicas", range ? std::max(options.np, options.max_np) : layout.pods},
                 {"standbyPerPod", options.standby}}},
               {"worker", {{"replicas", layout.pods}, {"template", {{"spec", pod}}}}}};
  if (options.init_timeout) spec["initTimeoutSeconds"] = *options.init_timeout;
  if (options.backoff_limit) spec["runPolicy"]["backoffLimit"] = *options.backoff_limit;
  if (options.fusion_threshold)
    spec["collectives"]["fusionThresholdBytes"] = *options.fusion_threshold;
  if (!options.backend.empty()) spec["collectives"]["backend"] = options.backend;
  Json job = {{"apiVersion", api::kApiVersion},
              {"kind", api::kKind},
              {"metadata",
               {{"name", NameForCommand(options.command)},
                {"namespace", "default"},
                {"annotations", {{api::kLocalWorkingDirAnnotation, cwd.string()}}}}},
              {"spec", spec}};
  if (auto parsed = api::ParseHorovodJob(job); !parsed)
    return Fail(ExitCode::kUsage, api::ToString(parsed.error()));
  return job;
}

}  // namespace ringmaster::cli
