#include "operator/local/store/volume_kinds.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "common/fields/fields.h"
#include "operator/kube/dns_names.h"
#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

// The first field of `source` that is none of these; empty: there is none.
std::string OtherKind(const Json& source, std::initializer_list<std::string_view> kinds) {
  if (!source.is_object()) return "";
  for (const auto& [kind, value] : source.items()) {
    if (value.is_null() || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) continue;
    return kind;
  }
  return "";
}

Cause NotHere(const std::string& path, const Json& value, const std::string& allowed) {
  return {"FieldValueNotSupported",
          "Unsupported value: " + value.dump(-1, ' ', false, Json::error_handler_t::replace) +
              ": local mode gives " + allowed,
          path};
}

std::vector<Cause> CheckVolumesOf(const Json& pod_spec, const std::string& path) {
  std::vector<Cause> causes;
  const Json& volumes = fields::List(pod_spec, "volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const Json& volume = volumes[i];
    const std::string at = path + ".volumes[" + std::to_string(i) + "].";
    // It is a folder's name, too.
    if (const std::string name = fields::Text(volume, "name"); !kube::IsDnsLabel(name))
      causes.push_back({"FieldValueInvalid",
                        "Invalid value: \"" + name +
                            "\": a volume's name has lower case letters, digits and '-', and "
                            "begins and ends with a letter or digit",
                        at + "name"});
    const std::string kind = OtherKind(volume, {"name", "emptyDir", "hostPath", "configMap",
                                                "secret", "downwardAPI", "projected"});
    if (kind == "persistentVolumeClaim") {
      const std::string claim = fields::Text(volume[kind], "claimName");
      causes.push_back(NotHere(at + kind, volume[kind],
                               "a claim as a folder of yours: `ringmaster run --volume " + claim +
                                   "=DIR`, or a hostPath in the manifest"));
    } else if (!kind.empty()) {
      causes.push_back(NotHere(at + kind, volume[kind],
                               "emptyDir, hostPath, configMap, secret, downwardAPI and projected"));
    }
    const Json& sources = fields::ListAt(volume, "/projected/sources");
    for (size_t s = 0; s < sources.size(); ++s) {
      const std::string source = OtherKind(sources[s], {"configMap", "secret", "downwardAPI"});
      if (source.empty()) continue;
      causes.push_back(NotHere(at + "projected.sources[" + std::to_string(s) + "]." + source,
                               sources[s][source], "configMap, secret and downwardAPI"));
    }
  }
  return causes;
}

}  // namespace

std::vector<Cause> CheckVolumes(const Resource& resource, const Json& object) {
  if (resource == kube::Pods()) return CheckVolumesOf(fields::At(object, "/spec"), "spec");
  if (resource != kube::HorovodJobs()) return {};
  return CheckVolumesOf(fields::At(object, "/spec/worker/template/spec"),
                        "spec.worker.template.spec");
}

}  // namespace ringmaster::local
