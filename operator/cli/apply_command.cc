#include "operator/cli/apply_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/fields/fields.h"
#include "operator/api/horovod_job.h"
#include "operator/cli/kube_failure.h"
#include "operator/kube/file.h"
#include "operator/kube/kube_api.h"
#include "operator/kube/yaml.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

constexpr char kFieldManager[] = "ringmaster-cli";
constexpr char kStandardInput[] = "-";

const kube::Resource* ResourceOf(const Json& object) {
  for (const kube::Resource* resource :
       {&kube::HorovodJobs(), &kube::Secrets(), &kube::ConfigMaps()}) {
    if (fields::Text(object, "kind") == resource->kind &&
        fields::Text(object, "apiVersion") == resource->ApiVersion())
      return resource;
  }
  return nullptr;
}

Outcome<std::string> TextOf(const std::filesystem::path& file) {
  if (file == kStandardInput)
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  auto text = kube::ReadFile(file);
  if (text) return *text;
  return Fail(ExitCode::kUsage,
              fmt::format("{}: can't be read: {}", file.string(), text.error().message()));
}

// Returns an empty text if the object has no error that can be seen without the API server.
std::string WhatIsWrong(const Json& object, const std::string& ns) {
  if (!object.is_object()) return "is no object";
  if (ResourceOf(object) == nullptr)
    return fmt::format(
        "kind: \"{}\" of apiVersion \"{}\" can't be applied: it has to be a HorovodJob, a Secret "
        "or a ConfigMap",
        fields::Text(object, "kind"), fields::Text(object, "apiVersion"));
  if (fields::TextAt(object, "/metadata/name").empty()) return "metadata.name: is missing";
  const std::string own = fields::TextAt(object, "/metadata/namespace");
  if (!own.empty() && !ns.empty() && own != ns)
    return fmt::format("metadata.namespace: is \"{}\", and -n says \"{}\"", own, ns);
  if (*ResourceOf(object) == kube::HorovodJobs()) {
    if (auto job = api::ParseHorovodJob(object); !job) return api::ToString(job.error());
  }
  return "";
}

Outcome<std::vector<Json>> Load(const ApplyOptions& options) {
  std::vector<Json> objects;
  for (const auto& file : options.files) {
    auto text = TextOf(file);
    if (!text) return tl::unexpected(text.error());
    auto documents = kube::YamlToJson(*text);
    if (!documents)
      return Fail(ExitCode::kUsage, fmt::format("{}: {}", file.string(), documents.error()));
    for (Json& object : *documents) {
      if (const std::string wrong = WhatIsWrong(object, options.target.ns); !wrong.empty())
        return Fail(ExitCode::kUsage, fmt::format("{}: {}", file.string(), wrong));
      objects.push_back(std::move(object));
    }
  }
  if (objects.empty()) return Fail(ExitCode::kUsage, "apply: the files hold no object");
  return objects;
}

// The API server names the fields and who set them, but not what one can do.
Failure NotApplied(const kube::Resource& resource, const kube::Error& error) {
  Failure failure = FromKube(error);
  if (error.code == kube::ErrorCode::kConflict)
    failure.message += fmt::format(
        ". The {} was changed by another program since; --force-conflicts takes these fields over, "
        "with the values of the file",
        resource.kind);
  return failure;
}

}  // namespace

Outcome<void> Apply(const ApplyOptions& options, const Surroundings& around) {
  auto objects = Load(options);
  if (!objects) return tl::unexpected(objects.error());
  auto to = Connect(options.target, around, Purpose::kChange);
  if (!to) return tl::unexpected(to.error());
  for (Json& object : *objects) {
    const kube::Resource& resource = *ResourceOf(object);
    const std::string name = fields::TextAt(object, "/metadata/name");
    std::string ns = fields::TextAt(object, "/metadata/namespace");
    if (ns.empty()) ns = to->ns;
    object["metadata"]["namespace"] = ns;
    auto done = to->api->Patch(resource, ns, name, object,
                               {.type = kube::PatchType::kApply,
                                .field_manager = kFieldManager,
                                .force = options.force_conflicts});
    if (!done) return tl::unexpected(NotApplied(resource, done.error()));
    std::printf("%s %s applied\n", resource.kind.c_str(), name.c_str());
  }
  return {};
}

}  // namespace ringmaster::cli
