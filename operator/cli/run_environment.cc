#include "operator/cli/run_environment.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/kube/base64.h"

namespace ringmaster::cli {

bool Travels(const std::string& variable) {
  constexpr std::string_view kOfThisMachine[] = {
      "DISPLAY", "HOME",  "HOST",  "HOSTNAME", "KUBECONFIG", "LOGNAME",         "MAIL", "OLDPWD",
      "PWD",     "SHELL", "SHLVL", "TERM",     "TMPDIR",     "WAYLAND_DISPLAY", "USER", "_"};
  constexpr std::string_view kPrefixes[] = {"SSH_", "XDG_", "DBUS_", "RINGMASTER_RUN"};
  // A Secret allows no other names, and a shell's exported functions are not settings.
  const bool is_name = !variable.empty() && variable.size() <= 253 && variable != "." &&
                       !variable.starts_with("..") &&
                       std::all_of(variable.begin(), variable.end(), [](unsigned char c) {
                         return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
                       });
  return is_name &&
         std::find(std::begin(kOfThisMachine), std::end(kOfThisMachine), variable) ==
             std::end(kOfThisMachine) &&
         std::none_of(std::begin(kPrefixes), std::end(kPrefixes),
                      [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

nlohmann::json EnvironmentSecret(const std::vector<std::string>& environment) {
  nlohmann::json data = nlohmann::json::object();
  for (const std::string& entry : environment) {
    const size_t at = entry.find('=');
    if (at == std::string::npos || !Travels(entry.substr(0, at))) continue;
    data[entry.substr(0, at)] = kube::EncodeBase64(entry.substr(at + 1));
  }
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", kEnvironmentSecret}, {"namespace", "default"}}},
          {"type", "Opaque"},
          {"data", data}};
}

}  // namespace ringmaster::cli
