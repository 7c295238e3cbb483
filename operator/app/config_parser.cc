#include "operator/app/config_parser.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "common/fields/parse.h"
#include "operator/app/setting_texts.h"
#include "operator/app/settings.h"
#include "operator/kube/file.h"
#include "operator/kube/yaml.h"

namespace ringmaster::app {
namespace {

using Json = nlohmann::json;
using Checked = tl::expected<void, std::string>;

std::string Allowed(const Setting& setting) {
  if (setting.rule != nullptr) return setting.rule->allowed;
  if (!setting.words.empty()) {
    const bool empty_too = setting.words.front().empty();
    return fmt::format("one of {}{}",
                       fmt::join(setting.words.begin() + empty_too, setting.words.end(), ", "),
                       empty_too ? ", or empty" : "");
  }
  if (std::holds_alternative<Field<int>>(setting.field)) {
    return fmt::format("an integer from {} to {}", setting.low, setting.high);
  }
  if (std::holds_alternative<Field<double>>(setting.field)) {
    return fmt::format("a number from {} to {}", setting.low, setting.high);
  }
  if (std::holds_alternative<Field<bool>>(setting.field)) return "true or false";
  return "a text";
}

std::string Wrong(const std::string& name, const Json& value, const Setting& setting) {
  return fmt::format("{}: {} is not allowed: {}", name,
                     value.dump(-1, ' ', false, Json::error_handler_t::replace), Allowed(setting));
}

bool IsGood(const Setting& setting, const std::string& text) {
  const auto& words = setting.words;
  if (!words.empty()) return std::find(words.begin(), words.end(), text) != words.end();
  if (text.empty()) return !setting.required;
  return setting.rule == nullptr || setting.rule->good(text);
}

// `name` is as the user wrote it, for the error.
Checked Put(const Setting& setting, const std::string& name, const Json& value,
            OperatorConfig* config) {
  const auto wrong = [&] { return tl::unexpected(Wrong(name, value, setting)); };
  if (const auto* field = std::get_if<Field<std::string>>(&setting.field)) {
    if (!value.is_string() || !IsGood(setting, value.get<std::string>())) return wrong();
    config->*(*field) = value.get<std::string>();
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

// Converts a flag's text to the value that a file would have. A text that can't be converted stays
// a text, and then has the wrong type.
Json FromText(const Setting& setting, const std::string& text) {
  if (std::holds_alternative<Field<std::string>>(setting.field)) return text;
  if (std::holds_alternative<Field<bool>>(setting.field)) {
    if (text.empty() || text == "true") return true;  // --leader-elect without a value
    return text == "false" ? Json(false) : Json(text);
  }
  const Json parsed = fields::ParseOrDiscard(text);
  return parsed.is_number() ? parsed : Json(text);
}

// The number of letters to change, add or remove to turn `a` into `b`.
std::size_t Distance(const std::string& a, const std::string& b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      const std::size_t other = std::min({row[j] + 1, row[j - 1] + 1, before + (same ? 0U : 1U)});
      before = std::exchange(row[j], other);
    }
  }
  return row.back();
}

// The setting that a misspelt flag or key probably meant, with dashes or without; nullptr if there
// is none.
const Setting* Nearest(const std::string& written) {
  std::string plain;
  for (const char c : written) plain += c == '-' || c == '_' ? "" : std::string(1, c);
  const Setting* best = nullptr;
  std::size_t best_distance = std::min<std::size_t>(4, plain.size() / 2 + 2);
  for (const Setting& setting : Settings()) {
    if (const std::size_t d = Distance(plain, KeyOf(setting.flag)); d < best_distance) {
      best = &setting;
      best_distance = d;
    }
  }
  return best;
}

std::string UnknownKey(const std::string& key) {
  if (const Setting* meant = Nearest(key); meant != nullptr) {
    return fmt::format("unknown key \"{}\": did you mean \"{}\"?", key, KeyOf(meant->flag));
  }
  std::vector<std::string> keys;
  for (const Setting& setting : Settings()) keys.push_back(KeyOf(setting.flag));
  return fmt::format("unknown key \"{}\": allowed are {}", key, fmt::join(keys, ", "));
}

std::string UnknownArgument(const std::string& argument) {
  if (!argument.starts_with("-")) {
    return fmt::format("{}: not expected: options begin with --", argument);
  }
  const std::string flag = argument.substr(0, argument.find('='));
  const Setting* meant = Nearest(flag);
  return fmt::format("{}: unknown option{}", flag,
                     meant == nullptr ? "" : fmt::format(": did you mean --{}?", meant->flag));
}

// --kube-qps (kubeQps), because either may have been written.
std::string BothNames(const std::string& flag) {
  return fmt::format("--{} ({})", flag, KeyOf(flag));
}

// Checks rules that involve several settings.
Checked CheckTogether(const OperatorConfig& config) {
  const auto wrong = [](const char* flag, const auto& value, const std::string& allowed) {
    return tl::unexpected(
        fmt::format("{}: {} is not allowed: {}", BothNames(flag), value, allowed));
  };
  if (config.renew_deadline_seconds >= config.lease_duration_seconds) {
    return wrong("renew-deadline-seconds", config.renew_deadline_seconds,
                 fmt::format("less than {}, which is {}, or two replicas could lead at once",
                             BothNames("lease-duration-seconds"), config.lease_duration_seconds));
  }
  if (config.retry_period_seconds >= config.renew_deadline_seconds) {
    return wrong("retry-period-seconds", config.retry_period_seconds,
                 fmt::format("less than {}, which is {}", BothNames("renew-deadline-seconds"),
                             config.renew_deadline_seconds));
  }
  if (config.metrics_secure && !config.metrics_listen.empty() &&
      config.metrics_listen == config.health_listen) {
    return wrong("metrics-listen", config.metrics_listen,
                 fmt::format("another address than {} with {}: probes have no token",
                             BothNames("health-listen"), BothNames("metrics-secure")));
  }
  const auto page = ParseHostPort(config.page_listen);
  for (const std::string& other : {config.health_listen, config.metrics_listen}) {
    if (page && page->port != 0 && config.page_listen == other) {
      return wrong("page-listen", config.page_listen,
                   fmt::format("another address than {} and {}: the page is closed",
                               BothNames("health-listen"), BothNames("metrics-listen")));
    }
  }
  const auto grpc = ParseHostPort(config.listen);
  if (!grpc || grpc->port == 0) return {};
  for (const auto& [flag, where] : {std::pair{"health-listen", config.health_listen},
                                    std::pair{"metrics-listen", config.metrics_listen},
                                    std::pair{"page-listen", config.page_listen}}) {
    if (where == config.listen)
      return wrong(flag, where, fmt::format("another address than {}", BothNames("listen")));
  }
  return {};
}

Checked ReadConfigFile(const std::string& file, OperatorConfig* config) {
  const auto text = kube::ReadFile(file);
  if (!text) {
    return tl::unexpected(
        fmt::format("--config {}: can't be read: {}", file, text.error().message()));
  }
  auto applied = ApplyConfigFile(*text, config);
  if (!applied) return tl::unexpected(fmt::format("--config {}: {}", file, applied.error()));
  return {};
}

// CLI11 treats "--namespace=" as an option without a value; as two words the value is empty.
std::vector<std::string> Words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool empty_value = word.starts_with("--") && word.ends_with('=');
    words.push_back(empty_value ? word.substr(0, word.size() - 1) : word);
    if (empty_value) words.emplace_back();
  }
  return words;
}

// The error message for an option without a value, or with several.
std::string WrongNumber(const std::string& flag, const std::vector<std::string>& words) {
  const auto given = std::count_if(words.begin(), words.end(), [&](const std::string& word) {
    return word == flag || word.starts_with(flag + "=");
  });
  if (given > 1) return fmt::format("{}: is given {} times: once is allowed", flag, given);
  return fmt::format("{}: needs a value", flag);
}

ConfigExit Refused(const std::string& why) {
  return {2, "ringmaster-operator: " + why + "\nringmaster-operator --help tells more\n"};
}

constexpr char kAbout[] =
    "Runs HorovodJobs: watches them and their pods, and is the rendezvous of their sidecars.\n"
    "Every option but the last three may stand in the file of --config, in camelCase: "
    "--kube-qps 50 is kubeQps: 50.\n"
    "`ringmaster-operator check -h` tells how an installed operator is looked at.\n";

// The contents of the command line; CLI11 fills it in.
struct Given {
  std::map<std::string, std::string> texts;  // by flag
  std::string config_file;
  bool print_config = false, version = false;
};

void AddSetting(CLI::App* cli, const Setting& setting, std::string* text) {
  CLI::Option* option = cli->add_option("--" + std::string(setting.flag), *text, setting.help);
  if (std::holds_alternative<Field<bool>>(setting.field)) {
    option->expected(0, 1)->type_name("BOOLEAN");
    return;
  }
  const OperatorConfig defaults;
  const std::string value =
      std::visit([&](auto field) { return fmt::format("{}", defaults.*field); }, setting.field);
  if (!value.empty()) option->default_str(value);
  const bool number = !std::holds_alternative<Field<std::string>>(setting.field);
  option->type_name(number ? "NUMBER" : "TEXT");
}

void AddOptions(CLI::App* cli, Given* given) {
  for (const Setting& setting : Settings()) AddSetting(cli, setting, &given->texts[setting.flag]);
  cli->add_option("--config", given->config_file, "YAML file with any of these; flags win over it")
      ->type_name("FILE");
  cli->add_flag("--print-config", given->print_config,
                "print what holds, as such a file, and exit");
  cli->add_flag("--version", given->version, "print the version and exit");
  cli->allow_extras();  // for our own error message about them
}

tl::expected<void, ConfigExit> Parse(CLI::App* cli, const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  try {
    cli->parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const CLI::CallForHelp&) {
    return tl::unexpected(ConfigExit{0, cli->help()});
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--workers: 1 required NUMBER missing"
    return tl::unexpected(Refused(WrongNumber(text.substr(0, text.find(':')), words)));
  } catch (const CLI::ParseError& error) {
    return tl::unexpected(Refused(error.what()));
  }
  if (const auto extra = cli->remaining(); !extra.empty()) {
    return tl::unexpected(Refused(UnknownArgument(extra.front())));
  }
  return {};
}

// Reads the file, then lets flags override it.
Checked Gather(const CLI::App& cli, const Given& given, OperatorConfig* config) {
  if (!given.config_file.empty()) {
    if (auto read = ReadConfigFile(given.config_file, config); !read) return read;
  }
  for (const Setting& setting : Settings()) {
    const std::string flag = "--" + std::string(setting.flag);
    if (cli.count(flag) == 0) continue;
    const Json value = FromText(setting, given.texts.at(setting.flag));
    if (auto put = Put(setting, flag, value, config); !put) return put;
  }
  return {};
}

}  // namespace

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
                                 [&key = key](const Setting& s) { return KeyOf(s.flag) == key; });
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
  CLI::App cli(kAbout);
  Given given;
  AddOptions(&cli, &given);
  if (auto parsed = Parse(&cli, Words(argc, argv)); !parsed) return tl::unexpected(parsed.error());
  if (given.version) {
    return tl::unexpected(ConfigExit{0, "ringmaster-operator " RINGMASTER_VERSION "\n"});
  }
  OperatorConfig config;
  auto good = Gather(cli, given, &config);
  if (good) good = CheckTogether(config);
  if (!good) return tl::unexpected(Refused(good.error()));
  if (given.print_config) return tl::unexpected(ConfigExit{0, ToYaml(config)});
  return config;
}

}  // namespace ringmaster::app
