#include "operator/cli/convert_overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"

namespace ringmaster::cli::conversion {
namespace {

// The Trainer's names of the pods that train, and of their container.
constexpr char kNode[] = "node";
const Fields kOverride = {{"time", kTheSame},
                          {"targetJobs", kTheSame},
                          {"targetJob", kTheSame},
                          {"metadata", kTheSame},
                          {"spec", kTheSame}};
const Fields kOverriddenSpec = {{"serviceAccountName", kTheSame}, {"nodeSelector", kTheSame},
                                {"affinity", kTheSame},           {"tolerations", kTheSame},
                                {"securityContext", kTheSame},    {"volumes", kTheSame},
                                {"schedulingGates", kTheSame},    {"imagePullSecrets", kTheSame}};
const Fields kOverriddenContainer = {{"name", kTheSame},
                                     {"env", kTheSame},
                                     {"volumeMounts", kTheSame},
                                     {"securityContext", kTheSame}};
const Fields kPatch = {
    {"manager", kTheSame}, {"time", kTheSame}, {"trainingRuntimeSpec", kTheSame}};
const Fields kOverriddenMetadata = {{"labels", kTheSame}, {"annotations", kTheSame}};

// By which items of a list are the same one: a volume's name, a mount's path. Empty: the list is
// replaced as a whole.
std::string KeyOf(const std::string& list) {
  if (list == "volumeMounts") return "mountPath";
  return list == "tolerations" ? "" : "name";
}

// Items without the key are no parts to be told apart: the list of terms of an affinity, say.
bool AllHave(const std::string& key, const Json& list) {
  return !key.empty() && std::all_of(list.begin(), list.end(), [&](const Json& item) {
    return !fields::Text(item, key.c_str()).empty();
  });
}

// Objects are merged, items of lists replaced by those of the same key, other lists as a whole.
void Merge(const Json& from, Json* into) {
  for (const auto& [name, value] : from.items()) {
    Json& old = (*into)[name];
    const std::string key = KeyOf(name);
    if (value.is_object() && old.is_object()) {
      Merge(value, &old);
    } else if (value.is_array() && old.is_array() && AllHave(key, value) && AllHave(key, old)) {
      for (const Json& item : value) {
        const auto same = std::find_if(old.begin(), old.end(), [&](const Json& other) {
          return fields::Text(other, key.c_str()) == fields::Text(item, key.c_str());
        });
        if (same == old.end()) {
          old.push_back(item);
        } else {
          *same = item;
        }
      }
    } else {
      old = value;
    }
  }
}

// Changes of containers: they have no image, so only the one that trains is known.
void MergeContainers(const Json& spec, const std::string& path, Json* container, Notes* notes) {
  for (const char* list : {"initContainers", "containers"}) {
    const Json& changed = fields::List(spec, list);
    for (size_t i = 0; i < changed.size(); ++i) {
      const std::string at = fmt::format("{}.{}[{}]", path, list, i);
      const std::string name = fields::Text(changed[i], "name");
      if (list != std::string("containers") || name != kNode) {
        notes->push_back(fmt::format(
            "{}: not carried over: container '{}' is in the runtime alone: copy it from there", at,
            name));
        continue;
      }
      Json taken = Take(changed[i], at, kOverriddenContainer, notes);
      taken.erase("name");
      Merge(taken, container);
    }
  }
}

void MergePod(const Json& metadata, const Json& spec, const std::string& path,
              const std::string& spec_path, Json* pod, Notes* notes) {
  const Json labels = Take(metadata, path + ".metadata", kOverriddenMetadata, notes);
  if (!labels.empty()) Merge(labels, &(*pod)["metadata"]);
  MergeContainers(spec, spec_path, &(*pod)["spec"]["containers"][0], notes);
  Json rest = spec.is_object() ? spec : Json::object();
  for (const char* list : {"containers", "initContainers"}) rest.erase(list);
  Merge(Take(rest, spec_path, kOverriddenSpec, notes), &(*pod)["spec"]);
}

bool IsForNode(const Words& targets, const std::string& path, Notes* notes) {
  if (targets.empty() || std::find(targets.begin(), targets.end(), kNode) != targets.end())
    return true;
  notes->push_back(fmt::format("{}: not carried over: it is for '{}', and only '{}' trains", path,
                               fmt::join(targets, "', '"), kNode));
  return false;
}

// [{targetJobs: [{name}], metadata, spec}], or before [{targetJob, serviceAccountName, ...}].
void MergeList(const Json& spec, const char* field, Json* pod, Notes* notes) {
  const Json& list = fields::List(spec, field);
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("spec.{}[{}]", field, i);
    Words targets;
    for (const Json& target : fields::List(list[i], "targetJobs"))
      targets.push_back(fields::Text(target, "name"));
    if (const std::string one = fields::Text(list[i], "targetJob"); !one.empty())
      targets.push_back(one);
    if (!IsForNode(targets, path, notes)) continue;
    Json changed = list[i];
    if (field == std::string("podSpecOverrides")) {
      for (const char* other : {"targetJobs", "targetJob"}) changed.erase(other);
      MergePod(nullptr, changed, path, path, pod, notes);
      continue;
    }
    changed = Take(changed, path, kOverride, notes);
    MergePod(fields::Member(changed, "metadata"), fields::Member(changed, "spec"), path,
             path + ".spec", pod, notes);
  }
}

// Notes what an object has beside the fields that lead to a pod template.
void NoteBeside(const Words& way, const Json& object, const std::string& path, Notes* notes) {
  Fields known;
  for (const std::string& name : way) known[name] = kTheSame;
  (void)Take(object, path, known, notes);
}

void MergeReplicatedJob(const Json& job, const std::string& path, Json* pod, Notes* notes) {
  if (!IsForNode({fields::Text(job, "name")}, path, notes)) return;
  const Json& own_template = fields::Member(job, "template");
  if (!fields::Member(own_template, "metadata").is_null())
    notes->push_back(path + ".template.metadata: not carried over: it is for a Job of a JobSet");
  const Json& spec = fields::Member(own_template, "spec");
  const Json& changed = fields::Member(spec, "template");
  const std::string at = path + ".template.spec.template";
  NoteBeside({"name", "template"}, job, path, notes);
  NoteBeside({"metadata", "spec"}, own_template, path + ".template", notes);
  NoteBeside({"template"}, spec, path + ".template.spec", notes);
  NoteBeside({"metadata", "spec"}, changed, at, notes);
  MergePod(fields::Member(changed, "metadata"), fields::Member(changed, "spec"), at, at + ".spec",
           pod, notes);
}

// Of a patch everything but the pod template of `node` is the JobSet's, which is not there.
void MergePatch(const Json& patch, const std::string& path, Json* pod, Notes* notes) {
  if (const std::string manager = fields::Text(patch, "manager"); manager.starts_with("kueue.")) {
    notes->push_back(
        fmt::format("{}: not carried over: {} wrote it, and decides anew", path, manager));
    return;
  }
  (void)Take(patch, path, kPatch, notes);
  const std::string runtime = path + ".trainingRuntimeSpec", set = runtime + ".template";
  const Json& runtime_spec = fields::Member(patch, "trainingRuntimeSpec");
  const Json& set_template = fields::Member(runtime_spec, "template");
  const Json& spec = fields::Member(set_template, "spec");
  NoteBeside({"template"}, runtime_spec, runtime, notes);
  NoteBeside({"metadata", "spec"}, set_template, set, notes);
  NoteBeside({"replicatedJobs"}, spec, set + ".spec", notes);
  if (!fields::Member(set_template, "metadata").is_null())
    notes->push_back(set + ".metadata: not carried over: it is for a JobSet, and there is none");
  const Json& jobs = fields::List(spec, "replicatedJobs");
  for (size_t i = 0; i < jobs.size(); ++i)
    MergeReplicatedJob(jobs[i], fmt::format("{}.spec.replicatedJobs[{}]", set, i), pod, notes);
}

}  // namespace

Json OverriddenTemplate(const Json& spec, Notes* notes) {
  Json pod;
  pod["spec"]["containers"] = Json::array({Json::object()});
  for (const char* field : {"podSpecOverrides", "podTemplateOverrides"})
    MergeList(spec, field, &pod, notes);
  const Json& patches = fields::List(spec, "runtimePatches");
  for (size_t i = 0; i < patches.size(); ++i)
    MergePatch(patches[i], fmt::format("spec.runtimePatches[{}]", i), &pod, notes);
  return pod;
}

}  // namespace ringmaster::cli::conversion
