#include "operator/cli/convert_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <utility>

#include "operator/api/horovod_job.h"
#include "operator/cli/convert.h"
#include "operator/cli/yaml_text.h"
#include "operator/kube/file.h"
#include "operator/kube/yaml.h"

namespace ringmaster::cli {
namespace {

Outcome<std::string> Read(const std::string& path) {
  if (path == "-")
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  auto text = kube::ReadFile(path);
  if (!text)
    return Fail(ExitCode::kUsage,
                fmt::format("{}: can't be read: {}", path, text.error().message()));
  return std::move(*text);
}

}  // namespace

Outcome<void> Convert(const ConvertOptions& options) {
  const auto text = Read(options.file);
  if (!text) return tl::unexpected(text.error());
  const auto documents = kube::YamlToJson(*text);
  if (!documents) return Fail(ExitCode::kUsage, options.file + ": " + documents.error());
  if (documents->size() != 1)
    return Fail(ExitCode::kUsage, fmt::format("{}: it has {} documents: give one job", options.file,
                                              documents->size()));
  auto converted = ConvertJob(documents->front());
  if (!converted)
    return Fail(converted.error().code, options.file + ": " + converted.error().message);
  std::fputs(ToYaml(converted->job).c_str(), stdout);
  for (const std::string& note : converted->notes)
    std::fprintf(stderr, "ringmaster: %s\n", note.c_str());
  std::vector<std::string> to_mend = std::move(converted->to_mend);
  if (const auto parsed = api::ParseHorovodJob(converted->job); !parsed)
    to_mend.push_back(api::ToString(parsed.error()));
  if (to_mend.empty()) return {};
  return Fail(ExitCode::kUsage, fmt::format("to be mended by hand before it is taken:\n{}",
                                            fmt::join(to_mend, "\n")));
}

}  // namespace ringmaster::cli
