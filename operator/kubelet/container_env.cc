#include "operator/kubelet/container_env.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/kube/base64.h"
#include "operator/kubelet/process.h"
#include "operator/kubelet/volume_file.h"
#include "operator/scheduler/quantity.h"

namespace ringmaster::kubelet {
namespace {

namespace fs = std::filesystem;
using Vars = std::map<std::string, std::string>;

tl::unexpected<SetupError> ConfigError(const std::string& message) {
  return tl::unexpected(SetupError{"CreateContainerConfigError", message});
}

// Key and bytes of a ConfigMap's or Secret's data.
std::map<std::string, std::string> DataOf(const Json& object, bool secret) {
  std::map<std::string, std::string> data;
  for (const char* field : {"data", "binaryData"}) {
    for (const auto& [key, value] : fields::Member(object, field).items()) {
      if (!value.is_string()) continue;
      bool encoded = secret || std::string_view(field) == "binaryData";
      data[key] = encoded ? kube::DecodeBase64(value.get<std::string>()).value_or("")
                          : value.get<std::string>();
    }
  }
  return data;
}

tl::expected<void, SetupError> WriteFile(const fs::path& dir, const std::string& path,
                                         const std::string& bytes) {
  if (auto wrote = WriteVolumeFile(dir, path, bytes); !wrote) return ConfigError(wrote.error());
  return {};
}

tl::expected<void, SetupError> FillFromData(const SetupContext& context,
                                            const kube::Resource& resource, const std::string& name,
                                            const Json& source, const fs::path& dir) {
  bool optional = fields::Flag(source, "optional");
  Json object = context.read(resource, name);
  if (object.is_null()) {
    if (optional) return {};
    return ConfigError(resource.plural.substr(0, resource.plural.size() - 1) + " \"" + name +
                       "\" not found");
  }
  auto data = DataOf(object, resource == kube::Secrets());
  if (!fields::Member(source, "items").is_array()) {
    for (const auto& [key, bytes] : data) {
      if (auto wrote = WriteFile(dir, key, bytes); !wrote) return wrote;
    }
    return {};
  }
  for (const Json& item : fields::Member(source, "items")) {
    auto found = data.find(fields::Text(item, "key"));
    if (found == data.end() && optional) continue;
    if (found == data.end()) {
      return ConfigError("references non-existent key \"" + fields::Text(item, "key") + "\" of " +
                         name);
    }
    auto wrote = WriteFile(dir, fields::Text(item, "path"), found->second);
    if (!wrote) return wrote;
  }
  return {};
}

std::optional<std::string> FieldValue(const SetupContext& context, const std::string& path) {
  const Json& pod = context.pod;
  const Json& meta = pod["metadata"];
  for (const char* map : {"labels", "annotations"}) {
    std::string prefix = std::string("metadata.") + map + "['";
    if (path.starts_with(prefix) && path.ends_with("']")) {
      return fields::Text(fields::Member(meta, map),
                          path.substr(prefix.size(), path.size() - prefix.size() - 2).c_str());
    }
  }
  if (path == "metadata.name") return fields::Text(meta, "name");
  if (path == "metadata.namespace") return fields::Text(meta, "namespace");
  if (path == "metadata.uid") return fields::Text(meta, "uid");
  if (path == "spec.nodeName") return fields::Text(pod["spec"], "nodeName");
  if (path == "spec.serviceAccountName") return fields::Text(pod["spec"], "serviceAccountName");
  if (path == "status.podIP" || path == "status.hostIP" || path == "status.podIPs" ||
      path == "status.hostIPs") {
    return context.address;
  }
  return std::nullopt;
}

// The amount of resourceFieldRef, of this container: a whole number of its divisor, rounded up, as
// on a cluster; "0" if the container has none.
std::string Amount(const Json& container, const Json& ref) {
  const std::string path = fields::Text(ref, "resource");
  const size_t dot = path.find('.');
  const Json& amounts =
      fields::Member(fields::Member(container, "resources"), path.substr(0, dot).c_str());
  const std::string name = dot == std::string::npos ? "" : path.substr(dot + 1);
  const double amount = scheduler::ParseQuantity(fields::Member(amounts, name.c_str()));
  const double divisor = scheduler::ParseQuantity(fields::Member(ref, "divisor"));
  // "1001m" by "1m" is 1001, whatever the last digit of the quotient is.
  constexpr double kExact = 1 - 1e-12;
  const double whole = std::ceil(amount / (divisor > 0 ? divisor : 1) * kExact);
  constexpr double kMost = 1e18;  // a number of 64 bits
  return std::to_string(static_cast<std::int64_t>(std::min(whole, kMost)));
}

tl::unexpected<SetupError> NotSupported(const std::string& what, const std::string& path) {
  return ConfigError(what + ": fieldPath \"" + path + "\" is not supported in local mode");
}

// All labels or annotations, as a file of the downward API has them.
std::string Lines(const Json& map) {
  std::string lines;
  for (const auto& [key, value] : map.items()) lines += key + "=" + value.dump() + "\n";
  return lines;
}

// What an item of the downward API says; `what` it belongs to, for an error.
tl::expected<std::string, SetupError> DownwardValue(const SetupContext& context, const Json& item,
                                                    const std::string& what) {
  if (const Json& ref = fields::Member(item, "resourceFieldRef"); ref.is_object()) {
    const std::string named = fields::Text(ref, "containerName");
    for (const Json& container : fields::List(context.pod["spec"], "containers"))
      if (fields::Text(container, "name") == named) return Amount(container, ref);
    return Amount(context.container, ref);
  }
  const std::string path = fields::Text(fields::Member(item, "fieldRef"), "fieldPath");
  const Json& meta = context.pod["metadata"];
  if (path == "metadata.labels") return Lines(fields::Member(meta, "labels"));
  if (path == "metadata.annotations") return Lines(fields::Member(meta, "annotations"));
  if (auto value = FieldValue(context, path)) return *value;
  return NotSupported(what, path);
}

// Makes the directory that stands for the volume; its path.
tl::expected<fs::path, SetupError> MakeVolume(const SetupContext& context, const Json& volume) {
  std::string name = fields::Text(volume, "name");
  fs::path dir = context.pod_dir / name;
  if (const Json& host = fields::Member(volume, "hostPath"); host.is_object())
    return fs::path(fields::Text(host, "path"));
  std::error_code error;
  fs::create_directories(dir, error);
  if (error)
    return ConfigError("volume \"" + name + "\": " + dir.string() + ": " + error.message());
  auto fill = [&](const Json& source) -> tl::expected<void, SetupError> {
    if (const Json& c = fields::Member(source, "configMap"); c.is_object()) {
      return FillFromData(context, kube::ConfigMaps(), fields::Text(c, "name"), c, dir);
    }
    if (const Json& s = fields::Member(source, "secret"); s.is_object()) {
      std::string secret = fields::Text(s, "secretName");
      return FillFromData(context, kube::Secrets(),
                          secret.empty() ? fields::Text(s, "name") : secret, s, dir);
    }
    for (const Json& item : fields::Member(fields::Member(source, "downwardAPI"), "items")) {
      const auto value = DownwardValue(context, item, "volume " + name);
      if (!value) return tl::unexpected(value.error());
      if (auto wrote = WriteFile(dir, fields::Text(item, "path"), *value); !wrote) return wrote;
    }
    return {};
  };
  if (auto ok = fill(volume); !ok) return tl::unexpected(ok.error());
  for (const Json& source : fields::Member(fields::Member(volume, "projected"), "sources")) {
    if (auto ok = fill(source); !ok) return tl::unexpected(ok.error());
  }
  return dir;
}

tl::expected<Vars, SetupError> MakeVolumes(const SetupContext& context) {
  Vars mounts;
  for (const Json& mount : fields::Member(context.container, "volumeMounts")) {
    for (const Json& volume : fields::Member(context.pod["spec"], "volumes")) {
      if (fields::Text(volume, "name") != fields::Text(mount, "name")) continue;
      auto dir = MakeVolume(context, volume);
      if (!dir) return tl::unexpected(dir.error());
      mounts[MountVariable(fields::Text(volume, "name"))] = dir->string();
    }
  }
  return mounts;
}

tl::expected<std::string, SetupError> ValueFrom(const SetupContext& context, const Json& from,
                                                const std::string& variable) {
  if (const Json& ref = fields::Member(from, "fieldRef"); ref.is_object()) {
    auto value = FieldValue(context, fields::Text(ref, "fieldPath"));
    if (value) return *value;
    return NotSupported("env " + variable, fields::Text(ref, "fieldPath"));
  }
  for (bool secret : {false, true}) {
    const Json& ref = fields::Member(from, secret ? "secretKeyRef" : "configMapKeyRef");
    if (!ref.is_object()) continue;
    const kube::Resource& resource = secret ? kube::Secrets() : kube::ConfigMaps();
    auto data = DataOf(context.read(resource, fields::Text(ref, "name")), secret);
    auto found = data.find(fields::Text(ref, "key"));
    if (found != data.end()) return found->second;
    if (fields::Flag(ref, "optional")) return std::string();
    return ConfigError("env " + variable + ": couldn't find key " + fields::Text(ref, "key") +
                       " in " + (secret ? "Secret " : "ConfigMap ") + fields::Text(ref, "name"));
  }
  if (const Json& ref = fields::Member(from, "resourceFieldRef"); ref.is_object())
    return Amount(context.container, ref);
  return std::string();
}

// The container's own variables in order of declaration; later ones may use earlier ones.
tl::expected<Vars, SetupError> OwnVariables(const SetupContext& context, const Vars& mounts) {
  Vars vars = mounts;
  for (const Json& from : fields::Member(context.container, "envFrom")) {
    for (bool secret : {false, true}) {
      const Json& ref = fields::Member(from, secret ? "secretRef" : "configMapRef");
      if (!ref.is_object()) continue;
      Json object =
          context.read(secret ? kube::Secrets() : kube::ConfigMaps(), fields::Text(ref, "name"));
      if (object.is_null() && !fields::Flag(ref, "optional")) {
        return ConfigError(std::string(secret ? "secret" : "configmap") + " \"" +
                           fields::Text(ref, "name") + "\" not found");
      }
      for (const auto& [key, value] : DataOf(object, secret))
        vars[fields::Text(from, "prefix") + key] = value;
    }
  }
  for (const Json& item : fields::Member(context.container, "env")) {
    std::string name = fields::Text(item, "name");
    if (mounts.count(name)) continue;
    if (const Json& from = fields::Member(item, "valueFrom"); from.is_object()) {
      auto value = ValueFrom(context, from, name);
      if (!value) return tl::unexpected(value.error());
      vars[name] = *value;
    } else {
      vars[name] = ExpandVariables(fields::Text(item, "value"), vars);
    }
  }
  return vars;
}

std::vector<std::string> Environment(const SetupContext& context, const Vars& own,
                                     std::string& path) {
  Vars all;
  for (const std::string& entry : context.machine_env) {
    size_t at = entry.find('=');
    if (at != std::string::npos) all[entry.substr(0, at)] = entry.substr(at + 1);
  }
  all["HOSTNAME"] = fields::Text(context.pod["metadata"], "name");
  const std::string output_dir = fields::Text(
      fields::Member(context.pod["metadata"], "annotations"), api::kLocalOutputDirAnnotation);
  if (!output_dir.empty()) all["RINGMASTER_OUTPUT_DIR"] = output_dir;
  for (const auto& [name, value] : own) all[name] = value;
  if (IsSidecarImage(fields::Text(context.container, "image"))) {
    all["PATH"] = context.bin_dir.string() + ":" + all["PATH"];
  }
  path = all["PATH"];
  std::vector<std::string> env;
  for (const auto& [name, value] : all) env.push_back(name + "=" + value);
  for (const std::string& mark : context.marks) env.push_back(mark);
  return env;
}

}  // namespace

std::string ExpandVariables(const std::string& text,
                            const std::map<std::string, std::string>& vars) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out += text[i];
    } else if (text[i + 1] == '$') {
      out += '$';
      ++i;
    } else if (size_t end = text.find(')', i); text[i + 1] == '(' && end != std::string::npos) {
      auto found = vars.find(text.substr(i + 2, end - i - 2));
      out += found == vars.end() ? text.substr(i, end - i + 1) : found->second;
      i = end;
    } else {
      out += '$';
    }
  }
  return out;
}

std::string MountVariable(const std::string& volume) {
  std::string name = "RINGMASTER_MOUNT_";
  for (unsigned char c : volume)
    name += c == '-' || c == '.' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

bool IsSidecarImage(const std::string& image) {
  return image == "ringmaster.dev/sidecar" || image.starts_with("ringmaster.dev/sidecar:") ||
         image.starts_with("ringmaster.dev/sidecar@");
}

tl::expected<ContainerSetup, SetupError> SetUpContainer(const SetupContext& context) {
  auto mounts = MakeVolumes(context);
  if (!mounts) return tl::unexpected(mounts.error());
  auto own = OwnVariables(context, *mounts);
  if (!own) return tl::unexpected(own.error());
  ContainerSetup setup;
  std::string path;
  setup.env = Environment(context, *own, path);

  for (const char* list : {"command", "args"}) {
    for (const Json& word : fields::Member(context.container, list)) {
      if (word.is_string()) setup.argv.push_back(ExpandVariables(word.get<std::string>(), *own));
    }
  }
  std::string image = fields::Text(context.container, "image");
  if (fields::Member(context.container, "command").empty() && IsSidecarImage(image)) {
    setup.argv.insert(setup.argv.begin(), "ringmaster-sidecar");
  }
  if (fields::Member(context.container, "command").empty() && !IsSidecarImage(image)) {
    return tl::unexpected(SetupError{
        "CreateContainerError", "container \"" + fields::Text(context.container, "name") +
                                    "\" has no command: local mode runs no images, so the manifest "
                                    "must say what image \"" +
                                    image + "\" would run"});
  }

  std::string dir = fields::Text(context.container, "workingDir");
  if (dir.empty()) {
    dir = fields::Text(fields::Member(context.pod["metadata"], "annotations"),
                       api::kLocalWorkingDirAnnotation);
  }
  std::error_code error;
  setup.working_dir = dir.empty() ? fs::current_path(error) : fs::path(dir);
  if (!fs::is_directory(setup.working_dir, error)) {
    return tl::unexpected(SetupError{
        "ContainerCannotRun",
        "working directory " + setup.working_dir.string() + ": no such directory on this machine"});
  }
  auto program = FindProgram(setup.argv[0], path, setup.working_dir);
  if (!program) {
    bool file = setup.argv[0].find('/') != std::string::npos;
    return tl::unexpected(SetupError{
        "ContainerCannotRun",
        "\"" + setup.argv[0] +
            "\": " + (file ? "no such executable file" : "executable file not found in $PATH")});
  }
  setup.argv[0] = program->string();
  return setup;
}

}  // namespace ringmaster::kubelet
