#include "operator/app/operator_config.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <variant>

#include "logging/log.h"
#include "operator/kube/yaml.h"

namespace ringmaster::app {
namespace {

using Json = nlohmann::json;
using Checked = tl::expected<void, std::string>;

template <class T>
using Field = T OperatorConfig::*;

struct Setting {
  const char* flag;  // without the dashes
  std::variant<Field<std::string>, Field<int>, Field<double>, Field<bool>> field;
  const char* help;
  double low = 0, high = 0;                        // numbers
  std::vector<std::string> words = {};             // texts: only these
  Checked (*check)(const std::string&) = nullptr;  // texts: what is wrong with it
};

Checked CheckHostPort(const std::string& text) {
  if (text.empty()) return {};
  auto parsed = ParseHostPort(text);
  if (!parsed) return tl::unexpected(parsed.error());
  return {};
}

// gRPC's own word on an address comes when it listens; this catches what is no address at all.
Checked CheckGrpcListen(const std::string& text) {
  if (text.rfind("unix:", 0) == 0 && text.size() > 5) return {};
  auto parsed = ParseHostPort(text);
  if (!parsed) return tl::unexpected(parsed.error() + " or unix:/path");
  return {};
}

// {"requests": {...}, "limits": {...}}; the quantities are the API server's to judge.
Checked CheckResources(const std::string& text) {
  if (text.empty()) return {};
  const Json resources = Json::parse(text, nullptr, false);
  bool good = resources.is_object();
  for (const auto& [key, quantities] : resources.items()) {
    good = good && (key == "requests" || key == "limits") && quantities.is_object();
  }
  if (good) return {};
  return tl::unexpected(
      std::string(R"(allowed: JSON such as {"requests": {"cpu": "50m"}, "limits": {}})"));
}

Checked CheckNotEmpty(const std::string& text) {
  if (!text.empty()) return {};
  return tl::unexpected(std::string("allowed: a text that is not empty"));
}

template <std::size_t n>
std::vector<std::string> WordsOf(const char* const (&words)[n]) {
  return {words, words + n};
}

const std::vector<Setting>& Settings() {
  using C = OperatorConfig;
  static const std::vector<Setting> kSettings = {
      {"kubeconfig", &C::kubeconfig,
       "kubeconfig file (default: the pod's service account, else $KUBECONFIG or ~/.kube/config)"},
      {.flag = "listen",
       .field = &C::listen,
       .help = "where sidecars attend: host:port or unix:/path",
       .check = CheckGrpcListen},
      {"sidecar-target", &C::sidecar_target,
       "what sidecars dial, if it is not --listen (a Service's name and port)"},
      {.flag = "sidecar-image",
       .field = &C::sidecar_image,
       .help = "image of sidecar and launcher",
       .check = CheckNotEmpty},
      {.flag = "sidecar-image-pull-policy",
       .field = &C::sidecar_image_pull_policy,
       .help = "imagePullPolicy of sidecar and launcher (default: Kubernetes')",
       .words = {"", "Always", "IfNotPresent", "Never"}},
      {.flag = "sidecar-resources",
       .field = &C::sidecar_resources,
       .help = "requests and limits of the sidecar, as JSON",
       .check = CheckResources},
      {"tls", &C::tls,
       "mutual TLS with the sidecars; never where what they dial is local to this machine"},
      {"operator-namespace", &C::operator_namespace,
       "namespace of the certificate authority (default: $POD_NAMESPACE, else default)"},
      {"network-policy", &C::network_policy, "make a NetworkPolicy for each job"},
      {"metrics-namespace", &C::metrics_namespace,
       "only pods of this namespace may read sidecars' metrics (default: everybody)"},
      {"namespace", &C::watch_namespace, "only jobs of this namespace (default: of all)"},
      {"disruption-taints", &C::disruption_taints,
       "keys of taints that announce the end of a node, with commas, instead of the usual ones"},
      {"trust-node-deletion", &C::trust_node_deletion,
       "a node's object is only removed after its instance, so its absence proves that its pods "
       "are "
       "dead (true where a cloud's node controller removes it)"},
      {"clear-finalizers", &C::clear_finalizers,
       "take our finalizer off all worker pods and exit: for uninstalling"},
      {"workers", &C::workers, "jobs reconciled at a time", 1, 64},
      {"gang-admission", &C::gang_admission,
       "pods of a job start together or not at all; =false where an autoscaler has to see them "
       "Pending (default: true)"},
      {.flag = "health-listen",
       .field = &C::health_listen,
       .help = "host:port for /healthz and /readyz (default: not served)",
       .check = CheckHostPort},
      {.flag = "metrics-listen",
       .field = &C::metrics_listen,
       .help = "host:port for /metrics (default: not served)",
       .check = CheckHostPort},
      {"leader-elect", &C::leader_elect,
       "run the controllers only while this replica holds a Lease; for two replicas and more"},
      {"leader-election-namespace", &C::leader_election_namespace,
       "namespace of the Lease and of the operator's pods (default: $POD_NAMESPACE, else default)"},
      {.flag = "leader-election-name",
       .field = &C::leader_election_name,
       .help = "name of the Lease",
       .check = CheckNotEmpty},
      {"lease-duration-seconds", &C::lease_duration_seconds,
       "another replica may lead so long after the last renewal", 1, 3600},
      {"renew-deadline-seconds", &C::renew_deadline_seconds,
       "a leader that could not renew for so long ends", 1, 3600},
      {"retry-period-seconds", &C::retry_period_seconds, "between two looks at the Lease", 1, 3600},
      {"api-server-timeout-seconds", &C::api_server_timeout_seconds,
       "how long to wait for the API server to be reachable at the start", 1, 86400},
      {"kube-qps", &C::kube_qps, "calls to the API server each second, on average", 0.1, 10000},
      {"kube-burst", &C::kube_burst, "calls to the API server at once", 1, 10000},
      {.flag = "log-format",
       .field = &C::log_format,
       .help = "a line of the log is text or a JSON object",
       .words = WordsOf(logging::kFormats)},
      {.flag = "log-level",
       .field = &C::log_level,
       .help = "what is logged",
       .words = WordsOf(logging::kLevels)},
  };
  return kSettings;
}

// --kube-qps is kubeQps in the file.
std::string KeyOf(const std::string& flag) {
  std::string key;
  for (std::size_t i = 0; i < flag.size(); ++i) {
    if (flag[i] != '-') {
      key += flag[i];
    } else if (++i < flag.size()) {
      key += static_cast<char>(std::toupper(static_cast<unsigned char>(flag[i])));
    }
  }
  return key;
}

std::string NumberText(double value) { return fmt::format("{}", value); }

std::string Allowed(const Setting& setting) {
  if (!setting.words.empty()) return fmt::format("one of {}", fmt::join(setting.words, ", "));
  if (std::holds_alternative<Field<int>>(setting.field)) {
    return fmt::format("an integer from {} to {}", setting.low, setting.high);
  }
  if (std::holds_alternative<Field<double>>(setting.field)) {
    return fmt::format("a number from {} to {}", NumberText(setting.low), NumberText(setting.high));
  }
  if (std::holds_alternative<Field<bool>>(setting.field)) return "true or false";
  return "a text";
}

std::string Wrong(const std::string& name, const std::string& value, const Setting& setting) {
  return fmt::format("{}: {} is not allowed: {}", name, value, Allowed(setting));
}

// `name`: as the user wrote it, for the error.
Checked Put(const Setting& setting, const std::string& name, const Json& value,
            OperatorConfig* config) {
  const auto wrong = [&] { return tl::unexpected(Wrong(name, value.dump(), setting)); };
  if (const auto* field = std::get_if<Field<std::string>>(&setting.field)) {
    if (!value.is_string()) return wrong();
    const auto text = value.get<std::string>();
    const auto& words = setting.words;
    if (!words.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
      return wrong();
    }
    if (setting.check != nullptr) {
      const Checked checked = setting.check(text);
      if (!checked)
        return tl::unexpected(fmt::format("{}: {}: {}", name, value.dump(), checked.error()));
    }
    config->*(*field) = text;
  } else if (const auto* flag = std::get_if<Field<bool>>(&setting.field)) {
    if (!value.is_boolean()) return wrong();
    config->*(*flag) = value.get<bool>();
  } else {
    const auto* whole = std::get_if<Field<int>>(&setting.field);
    if (whole != nullptr ? !value.is_number_integer() : !value.is_number()) return wrong();
    const auto number = value.get<double>();
    if (number < setting.low || number > setting.high) return wrong();
    if (whole != nullptr) {
      config->*(*whole) = static_cast<int>(number);
    } else {
      config->*std::get<Field<double>>(setting.field) = number;
    }
  }
  return {};
}

// The text of a flag as the value that a file would have. What can't be read stays a text, and is
// then of the wrong type.
Json FromText(const Setting& setting, const std::string& text) {
  if (std::holds_alternative<Field<std::string>>(setting.field)) return text;
  if (std::holds_alternative<Field<bool>>(setting.field)) {
    if (text == "true") return true;
    return text == "false" ? Json(false) : Json(text);
  }
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_number() ? parsed : Json(text);
}

// Empty, or the key that was probably meant.
std::string Nearest(const std::string& key) {
  const auto distance = [](const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t before = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t other =
            std::min({row[j] + 1, row[j - 1] + 1,
                      before + (std::tolower(a[i - 1]) == std::tolower(b[j - 1]) ? 0U : 1U)});
        before = std::exchange(row[j], other);
      }
    }
    return row.back();
  };
  std::string plain;  // somebody wrote the flag
  for (const char c : key) plain += c == '-' || c == '_' ? "" : std::string(1, c);
  std::string best;
  std::size_t best_distance = 4;
  for (const Setting& setting : Settings()) {
    const std::string other = KeyOf(setting.flag);
    if (const std::size_t d = distance(plain, other); d < best_distance) {
      best = other;
      best_distance = d;
    }
  }
  return best;
}

std::string UnknownKey(const std::string& key) {
  if (const std::string meant = Nearest(key); !meant.empty()) {
    return fmt::format("unknown key \"{}\": did you mean \"{}\"?", key, meant);
  }
  std::vector<std::string> keys;
  for (const Setting& setting : Settings()) keys.push_back(KeyOf(setting.flag));
  return fmt::format("unknown key \"{}\": allowed are {}", key, fmt::join(keys, ", "));
}

// What no single value shows.
Checked CheckTogether(const OperatorConfig& config) {
  if (config.renew_deadline_seconds >= config.lease_duration_seconds) {
    return tl::unexpected(fmt::format(
        "renewDeadlineSeconds: {} is not allowed: less than leaseDurationSeconds ({}), or two "
        "replicas could lead at once",
        config.renew_deadline_seconds, config.lease_duration_seconds));
  }
  if (config.retry_period_seconds >= config.renew_deadline_seconds) {
    return tl::unexpected(
        fmt::format("retryPeriodSeconds: {} is not allowed: less than renewDeadlineSeconds ({})",
                    config.retry_period_seconds, config.renew_deadline_seconds));
  }
  return {};
}

Checked ReadConfigFile(const std::string& file, OperatorConfig* config) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) {
    return tl::unexpected(
        fmt::format("--config {}: can't be read: {}", file, std::strerror(errno)));
  }
  auto applied = ApplyConfigFile(text.str(), config);
  if (!applied) return tl::unexpected(fmt::format("--config {}: {}", file, applied.error()));
  return {};
}

ConfigExit Refused(const std::string& why) {
  return {2, "ringmaster-operator: " + why + "\nringmaster-operator --help tells more\n"};
}

}  // namespace

tl::expected<HostPort, std::string> ParseHostPort(const std::string& text) {
  const auto wrong = [] {
    return tl::unexpected(std::string("allowed: host:port, port 0 to 65535 (0: any free one)"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong();
  HostPort parsed;
  parsed.host = text.substr(0, colon);
  const bool bracketed = parsed.host.front() == '[' && parsed.host.back() == ']';
  if (bracketed) parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  if (!bracketed && parsed.host.find(':') != std::string::npos) return wrong();
  if (parsed.host.empty()) return wrong();
  const char *begin = text.data() + colon + 1, *end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, parsed.port);
  if (error != std::errc() || stopped != end || parsed.port < 0 || parsed.port > 65535) {
    return wrong();
  }
  return parsed;
}

tl::expected<void, std::string> ApplyConfigFile(std::string_view yaml, OperatorConfig* config) {
  const auto documents = kube::YamlToJson(yaml);
  if (!documents) return tl::unexpected(documents.error());
  if (documents->empty()) return {};
  if (documents->size() > 1) return tl::unexpected(std::string("more than one YAML document"));
  const Json& file = documents->front();
  if (!file.is_object()) {
    return tl::unexpected(std::string("not a mapping of keys to values, such as \"workers: 2\""));
  }
  for (const auto& [key, value] : file.items()) {
    const auto& settings = Settings();
    const auto at = std::find_if(settings.begin(), settings.end(),
                                 [&](const Setting& s) { return KeyOf(s.flag) == key; });
    if (at == settings.end()) return tl::unexpected(UnknownKey(key));
    if (auto put = Put(*at, key, value, config); !put) return put;
  }
  return {};
}

std::string ToYaml(const OperatorConfig& config) {
  std::string yaml;
  for (const Setting& setting : Settings()) {
    const std::string value =
        std::visit([&](auto field) { return Json(config.*field).dump(); }, setting.field);
    yaml += KeyOf(setting.flag) + ": " + value + "\n";
  }
  return yaml;
}

tl::expected<OperatorConfig, ConfigExit> ParseCommandLine(int argc, const char* const* argv) {
  CLI::App cli(
      "Runs HorovodJobs: watches them and their pods, and is the rendezvous of their sidecars.\n"
      "Every option but the last three may stand in the file of --config, in camelCase: "
      "--kube-qps 50 is kubeQps: 50.\n");
  std::map<std::string, std::string> given;
  std::string config_file;
  bool print_config = false, version = false;
  const OperatorConfig defaults;
  for (const Setting& setting : Settings()) {
    const std::string flag = "--" + std::string(setting.flag);
    std::string& text = given[setting.flag];
    CLI::Option* option = nullptr;
    if (std::holds_alternative<Field<bool>>(setting.field)) {
      option = cli.add_flag(flag, text, setting.help);
    } else {
      option = cli.add_option(flag, text, setting.help);
      const std::string value =
          std::visit([&](auto field) { return fmt::format("{}", defaults.*field); }, setting.field);
      if (!value.empty()) option->default_str(value);
      const bool number = !std::holds_alternative<Field<std::string>>(setting.field);
      option->type_name(number ? "NUMBER" : "TEXT");
    }
  }
  cli.add_option("--config", config_file, "YAML file with any of these; flags win over it")
      ->type_name("FILE");
  cli.add_flag("--print-config", print_config, "print what holds, as such a file, and exit");
  cli.add_flag("--version", version, "print the version and exit");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return tl::unexpected(ConfigExit{0, cli.help()});
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(Refused(error.what()));
  }
  if (version) {
    return tl::unexpected(ConfigExit{0, "ringmaster-operator " RINGMASTER_VERSION "\n"});
  }
  OperatorConfig config;
  if (!config_file.empty()) {
    if (auto read = ReadConfigFile(config_file, &config); !read) {
      return tl::unexpected(Refused(read.error()));
    }
  }
  for (const Setting& setting : Settings()) {
    const std::string flag = "--" + std::string(setting.flag);
    if (cli.count(flag) == 0) continue;
    if (auto put = Put(setting, flag, FromText(setting, given[setting.flag]), &config); !put) {
      return tl::unexpected(Refused(put.error()));
    }
  }
  if (auto checked = CheckTogether(config); !checked)
    return tl::unexpected(Refused(checked.error()));
  if (print_config) return tl::unexpected(ConfigExit{0, ToYaml(config)});
  return config;
}

}  // namespace ringmaster::app
