#include "sidecar/launcher/options.h"

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "sidecar/launcher/exit_policy.h"
#include "sidecar/launcher/layout.h"

namespace ringmaster::launcher {
namespace {

// The longest path that fits a sockaddr_un with its terminating zero.
constexpr size_t kMaxSocketPath = 107;

std::string Lookup(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry[name.size()] == '=' &&
        entry.compare(0, name.size(), name) == 0) {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

using Read = tl::expected<void, std::string>;

Read ReadInt(const std::vector<std::string>& environment, const char* name, int low, int high,
             int* value) {
  std::string text = Lookup(environment, name);
  if (text.empty()) return {};
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  if (code == std::errc() && end == text.data() + text.size() && *value >= low && *value <= high) {
    return {};
  }
  return tl::unexpected(std::string(name) + " is '" + text + "', an integer from " +
                        std::to_string(low) + " to " + std::to_string(high) + " is expected");
}

// `dir` comes before what the image or the user has under that name. Setting the variable in the
// pod would lose what an image says of itself, as NVIDIA's do.
void PrefixPath(std::vector<std::string>* environment, const std::string& name,
                const std::string& dir) {
  const std::string rest = Lookup(*environment, name);
  std::erase_if(*environment, [&](const std::string& entry) {
    return entry.compare(0, name.size() + 1, name + "=") == 0;
  });
  // An empty element would mean the working directory.
  environment->push_back(name + "=" + dir + (rest.empty() ? "" : ":" + rest));
}

Read ReadBackend(Options* options) {
  const auto& env = options->environment;
  const std::string text = Lookup(env, "RINGMASTER_COLLECTIVES");
  if (text.empty()) return {};
  const auto collectives = fields::Parse(text, "RINGMASTER_COLLECTIVES");
  if (!collectives) return tl::unexpected(collectives.error());
  options->foreign = fields::Text(*collectives, "backend") == "None";
  if (!options->foreign) return {};
  const std::string pod_ip = Lookup(env, "RINGMASTER_POD_IP");
  const std::string bind = Lookup(env, "RINGMASTER_BIND_WORKER");
  if (!bind.empty() || !pod_ip.empty()) options->bind = bind.empty() ? pod_ip : bind;
  if (!options->socket.empty()) return {};
  return tl::unexpected(std::string(
      "RINGMASTER_SOCKET is empty, but spec.collectives.backend is None: without a sidecar "
      "nobody knows the ranks"));
}

// spec.collectives.visibleGpus: each slot's own, of those that the container sees.
Read ReadGpus(Options* options) {
  const std::string text = Lookup(options->environment, "RINGMASTER_COLLECTIVES");
  if (text.empty()) return {};
  const auto collectives = fields::Parse(text, "RINGMASTER_COLLECTIVES");
  if (!collectives) return tl::unexpected(collectives.error());
  if (fields::Text(*collectives, "visibleGpus") != "Own") return {};
  if (options->standbys > 0 && options->slots > 1) {
    return tl::unexpected(std::string(
        "spec.collectives.visibleGpus is Own, so spec.elasticPolicy.standbyPerPod must be 0: "
        "a standby learns its slot, and so its GPU, when a worker has died"));
  }
  const std::string given = Lookup(options->environment, "CUDA_VISIBLE_DEVICES");
  std::istringstream list(given);
  for (std::string gpu; std::getline(list, gpu, ',');) options->own_gpus.push_back(gpu);
  if (given.empty()) {
    for (int slot = 0; slot < options->slots; ++slot)
      options->own_gpus.push_back(std::to_string(slot));
  }
  if (options->own_gpus.size() >= static_cast<size_t>(options->slots)) return {};
  return tl::unexpected("CUDA_VISIBLE_DEVICES is '" + given + "', must name " +
                        std::to_string(options->slots) +
                        " or more, one for each slot: spec.collectives.visibleGpus is Own");
}

Read ReadNumbers(Options* options) {
  const auto& env = options->environment;
  int grace = 30;
  const Read read =
      ReadInt(env, "RINGMASTER_SLOTS", 1, 1024, &options->slots)
          .and_then([&] { return ReadInt(env, "RINGMASTER_STANDBYS", 0, 1, &options->standbys); })
          .and_then([&] {
            return ReadInt(env, "RINGMASTER_REPLICA_INDEX", 0, 1 << 20, &options->replica_index);
          })
          .and_then(
              [&] { return ReadInt(env, "RINGMASTER_REPLICAS", 1, 1 << 20, &options->replicas); })
          .and_then([&] { return ReadInt(env, "RINGMASTER_GRACE_SECONDS", 0, 1 << 20, &grace); });
  options->grace = std::chrono::seconds(grace);
  if (options->foreign) options->standbys = 0;  // there is nothing that could wait in init()
  return read;
}

}  // namespace

tl::expected<Options, std::string> ParseOptions(int argc, char** argv, char** environment) {
  if (argc < 3 || std::strcmp(argv[1], "--") != 0)
    return tl::unexpected(std::string("usage: ringmaster-launcher -- COMMAND [ARGUMENT...]"));
  Options options;
  options.command.assign(argv + 2, argv + argc);
  for (char** entry = environment; *entry != nullptr; ++entry)
    options.environment.push_back(*entry);
  const auto& env = options.environment;
  options.socket = Lookup(env, "RINGMASTER_SOCKET");
  if (options.socket.size() > kMaxSocketPath) {
    return tl::unexpected("RINGMASTER_SOCKET has " + std::to_string(options.socket.size()) +
                          " bytes, at most 107 are allowed: " + options.socket);
  }
  options.job = Lookup(env, "RINGMASTER_JOB_UID");
  options.output_dir = Lookup(env, "RINGMASTER_OUTPUT_DIR");
  const Read read =
      ReadBackend(&options).and_then([&] { return ReadNumbers(&options); }).and_then([&] {
        return ReadGpus(&options);
      });
  if (!read) return tl::unexpected(read.error());
  const std::string installed = Lookup(env, "RINGMASTER_MOUNT_RINGMASTER_BIN");
  if (!installed.empty()) {
    PrefixPath(&options.environment, "LD_LIBRARY_PATH", installed + "/" + kLibraryDir);
    PrefixPath(&options.environment, "PYTHONPATH", installed + "/" + kPythonDir);
  }
  auto rules = ParseFailurePolicy(Lookup(env, "RINGMASTER_FAILURE_POLICY"));
  if (!rules) return tl::unexpected(rules.error());
  options.rules = std::move(*rules);
  return options;
}

}  // namespace ringmaster::launcher
