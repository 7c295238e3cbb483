#include "operator/cli/command_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::cli {
namespace {

// As one types it in a shell.
std::string Typed(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string("_-./=,:+@%").find(char(c)) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string ScaleAdvice(const nlohmann::json& job, int replicas) {
  const auto number = [&](const char* path) {
    return static_cast<int>(fields::IntegerAt(job, path, 1));
  };
  const int most = number("/spec/elasticPolicy/maxReplicas");
  const int least = number("/spec/elasticPolicy/minReplicas");
  const auto& containers = fields::ListAt(job, "/spec/worker/template/spec/containers");
  if (replicas <= most || containers.empty() ||
      fields::Text(containers.front(), "image") != kImageOfCommand)
    return "";
  const bool fixed = least == most;
  const int np = number("/spec/slotsPerWorker") * (fixed ? most : number("/spec/worker/replicas"));
  std::string command;
  for (const auto& word : fields::ListAt(containers.front(), "/command"))
    if (word.is_string()) command += " " + Typed(word.get<std::string>());
  return fmt::format(
      "{}; one that can be scaled so far is started by `ringmaster run -np {}{} --max-np {}{}`",
      fixed ? fmt::format("`run -np {}` alone makes a job of fixed size", np)
            : fmt::format("this job was started with --max-np {}", most),
      std::max(1, np), !fixed && least > 1 ? fmt::format(" --min-np {}", least) : "",
      std::max(np, replicas), command);
}

}  // namespace ringmaster::cli
