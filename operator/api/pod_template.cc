#include "operator/api/pod_template.h"

#include <fmt/format.h>

#include "common/fields/fields.h"
#include "operator/api/crd.h"
#include "operator/api/labels.h"
#include "operator/api/object_reader.h"
#include "operator/api/structure.h"

namespace ringmaster::api {
namespace {

constexpr char kTemplate[] = "spec.worker.template";

const Json& TemplateSchema() {
  static const Json& kSchema =
      JobSchema().at("/properties/spec/properties/worker/properties/template"_json_pointer);
  return kSchema;
}

bool IsOurs(const std::string& name) { return name.rfind(kOwnPrefix, 0) == 0; }

// The path is one of our mount points or below: ^/*(opt|(var/+)?run)/+ringmaster(/|$) in the
// schema.
bool IsReservedPath(const std::string& path) {
  std::string plain;  // with single slashes: "/opt/ringmaster/"
  for (const char c : "/" + path + "/") {
    if (c != '/' || plain.empty() || plain.back() != '/') plain += c;
  }
  for (const char* taken : {"/opt/ringmaster/", "/run/ringmaster/", "/var/run/ringmaster/"}) {
    if (plain.rfind(taken, 0) == 0) return true;
  }
  return false;
}

class Rules {
 public:
  Rules(bool taken_up, FieldErrors* errors) : taken_up_(taken_up), errors_(errors) {}

  void Template(const Json& pod_template) {
    const std::string path = kTemplate;
    const auto metadata = pod_template.find("metadata");
    if (metadata != pod_template.end() && metadata->is_object()) {
      Labels(fields::Object(*metadata, "labels"), path + ".metadata.labels");
      Prefix(fields::Object(*metadata, "annotations"), "annotations",
             path + ".metadata.annotations");
    }
    Spec(pod_template.at("spec"), path + ".spec");
  }

 private:
  void Error(std::string path, std::string message) {
    errors_->push_back({std::move(path), std::move(message)});
  }

  // Checks names of labels or annotations; `what` says which.
  void Prefix(const Json& map, const char* what, const std::string& path) {
    for (const auto& [name, value] : map.items()) {
      if (!IsOurs(name)) continue;
      return Error(path,
                   fmt::format("\"{}\": {} that begin with ringmaster.dev/ are taken", name, what));
    }
  }

  void Labels(const Json& labels, const std::string& path) {
    Prefix(labels, "labels", path);
    for (const char* name : {"job-name", "job-role", "replica-index"}) {
      if (!labels.contains(std::string("training.kubeflow.org/") + name)) continue;
      return Error(path,
                   "training.kubeflow.org/job-name, job-role and replica-index are set by "
                   "Ringmaster itself");
    }
  }

  void Spec(const Json& spec, const std::string& path) {
    std::string names;
    int workers = 0;
    for (const Json& container : fields::List(spec, "containers")) {
      const std::string name = container.at("name");
      names += (names.empty() ? "" : ", ") + Show(name);
      workers += name == kWorkerContainer ? 1 : 0;
    }
    if (workers != 1) {
      Error(path + ".containers",
            fmt::format("must hold exactly one container named \"{}\"; found {} (containers: [{}])",
                        kWorkerContainer, workers, names));
    }
    for (const char* list : {"containers", "initContainers"}) {
      for (std::size_t i = 0; i < fields::List(spec, list).size(); ++i) {
        Container(fields::List(spec, list)[i], fmt::format("{}.{}[{}]", path, list, i),
                  list == std::string("containers"));
      }
    }
    for (std::size_t i = 0; i < fields::List(spec, "volumes").size(); ++i) {
      Name(fields::List(spec, "volumes")[i], fmt::format("{}.volumes[{}]", path, i));
    }
    for (std::size_t i = 0; i < fields::List(spec, "schedulingGates").size(); ++i) {
      const std::string name = fields::List(spec, "schedulingGates")[i].at("name");
      if (!IsOurs(name)) continue;
      Error(fmt::format("{}.schedulingGates[{}].name", path, i),
            fmt::format("\"{}\": gates that begin with ringmaster.dev/ are taken", name));
    }
  }

  void Container(const Json& container, const std::string& path, bool main) {
    Name(container, path);
    if (main && container.at("name") == kWorkerContainer &&
        fields::List(container, "command").empty()) {
      Error(path + ".command",
            "is required, as a list such as [python3, train.py]: Ringmaster starts it, so it can't "
            "take the image's entrypoint");
    }
    if (main && container.at("name") == kWorkerContainer) Restarts(container, path);
    const Json& env = fields::List(container, "env");
    for (std::size_t i = 0; i < env.size(); ++i) {
      const std::string name = env[i].at("name");
      if (!IsReservedEnv(name)) continue;
      Error(fmt::format("{}.env[{}].name", path, i),
            fmt::format("\"{}\" is set by Ringmaster itself: choose another name", name));
    }
    Ports(fields::List(container, "ports"), path + ".ports");
    Mounts(fields::List(container, "volumeMounts"), path + ".volumeMounts");
  }

  // A kubelet that started the worker again in its pod would keep failurePolicy from seeing its
  // end.
  void Restarts(const Json& worker, const std::string& path) {
    if (taken_up_) return;  // earlier versions took it
    constexpr char kWhy[] =
        "left out of container worker: Ringmaster itself starts workers again (failurePolicy)";
    if (worker.contains("restartPolicyRules"))
      Error(path + ".restartPolicyRules", fmt::format("must be {}", kWhy));
    const auto policy = worker.find("restartPolicy");
    if (policy != worker.end() && *policy != "Never")
      Error(path + ".restartPolicy", fmt::format("must be Never or {}", kWhy));
  }

  // All containers of a pod share one set of ports, so the sidecar's are taken.
  void Ports(const Json& ports, const std::string& path) {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      const auto protocol = ports[i].find("protocol");
      const bool tcp = protocol == ports[i].end() || protocol->is_null() || *protocol == "TCP";
      const int port = ports[i].at("containerPort");
      if (!tcp || port < 9401 || port > 9403) continue;
      Error(fmt::format("{}[{}].containerPort", path, i),
            fmt::format("{}: Ringmaster's sidecar listens on 9401 to 9403: choose another port",
                        port));
    }
  }

  void Mounts(const Json& mounts, const std::string& path) {
    for (std::size_t i = 0; i < mounts.size(); ++i) {
      const std::string at = mounts[i].at("mountPath");
      if (!IsReservedPath(at)) continue;
      Error(fmt::format("{}[{}].mountPath", path, i),
            fmt::format(
                "\"{}\": /opt/ringmaster and /run/ringmaster are taken: choose another path", at));
    }
  }

  void Name(const Json& item, const std::string& path) {
    const std::string name = item.at("name");
    if (name.rfind("ringmaster-", 0) != 0) return;
    Error(path + ".name", fmt::format("\"{}\": names that begin with ringmaster- are taken", name));
  }

  const bool taken_up_;  // an operator, perhaps of an earlier version, has accepted the job
  FieldErrors* const errors_;
};

}  // namespace

const std::set<std::string>& ReservedEnv() {
  static const std::set<std::string> kReserved = {
      "RINGMASTER_JOB_NAMESPACE", "RINGMASTER_JOB_NAME",    "RINGMASTER_JOB_UID",
      "RINGMASTER_POD_NAME",      "RINGMASTER_POD_UID",     "RINGMASTER_POD_IP",
      "RINGMASTER_NODE_NAME",     "RINGMASTER_ZONE",        "RINGMASTER_SLOTS",
      "RINGMASTER_STANDBYS",      "RINGMASTER_OPERATOR",    "RINGMASTER_STATE_DIR",
      "RINGMASTER_SOCKET",        "RINGMASTER_SLOT",        "RINGMASTER_INCARNATION",
      "RINGMASTER_STANDBY",       "RINGMASTER_REPLICAS",    "RINGMASTER_FAILURE_POLICY",
      "RINGMASTER_REPLICA_INDEX", "RINGMASTER_COLLECTIVES", "RINGMASTER_GRACE_SECONDS",
      "RINGMASTER_PROCESS"};
  return kReserved;
}

bool IsReservedEnv(const std::string& name) {
  return ReservedEnv().count(name) != 0 || name.rfind("RINGMASTER_MOUNT_", 0) == 0;
}

void CheckPodTemplate(const Json& pod_template, bool taken_up, FieldErrors* errors) {
  const std::size_t before = CountWrong(*errors);
  CheckStructure(TemplateSchema(), pod_template, kTemplate, errors);
  // The rules may rely on a valid structure.
  if (CountWrong(*errors) == before) Rules(taken_up, errors).Template(pod_template);
}

}  // namespace ringmaster::api
