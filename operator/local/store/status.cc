#include "operator/local/store/status.h"

#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

Json WithDetails(Json status, const Resource& resource, const std::string& name) {
  status["details"] = {{"name", name}, {"kind", resource.plural}};
  if (!resource.group.empty()) status["details"]["group"] = resource.group;
  return status;
}

std::string Quoted(const Resource& resource, const std::string& name) {
  return kube::QualifiedName(resource) + " \"" + name + "\"";
}

}  // namespace

Json Failure(int code, const std::string& reason, const std::string& message) {
  return {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", Json::object()},
          {"status", "Failure"}, {"message", message}, {"reason", reason},
          {"code", code}};
}

Json NotFound(const Resource& resource, const std::string& name) {
  return WithDetails(Failure(404, "NotFound", Quoted(resource, name) + " not found"), resource,
                     name);
}

Json AlreadyExists(const Resource& resource, const std::string& name) {
  return WithDetails(Failure(409, "AlreadyExists", Quoted(resource, name) + " already exists"),
                     resource, name);
}

Json Conflict(const Resource& resource, const std::string& name, const std::string& why) {
  return WithDetails(
      Failure(409, "Conflict",
              "Operation cannot be fulfilled on " + Quoted(resource, name) + ": " + why),
      resource, name);
}

Json ModifiedConflict(const Resource& resource, const std::string& name) {
  return Conflict(resource, name,
                  "the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

Json Invalid(const Resource& resource, const std::string& name, const std::vector<Cause>& causes) {
  std::string kind = resource.kind;
  if (!resource.group.empty()) kind += "." + resource.group;
  std::string list;
  Json details = Json::array();
  for (const Cause& cause : causes) {
    if (!list.empty()) list += ", ";
    list += cause.field + ": " + cause.message;
    details.push_back(
        {{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
  }
  if (causes.size() > 1) list = "[" + list + "]";
  Json status = WithDetails(Failure(422, "Invalid", kind + " \"" + name + "\" is invalid: " + list),
                            resource, name);
  status["details"]["kind"] = resource.kind;
  status["details"]["causes"] = std::move(details);
  return status;
}

Json BadRequest(const std::string& message) { return Failure(400, "BadRequest", message); }

Json CannotDecode(const Resource& resource, const std::string& why) {
  return BadRequest(resource.kind + " in version \"" + resource.version +
                    "\" cannot be handled as a " + resource.kind + ": " + why);
}

Json NoSuchPath() {
  return Failure(404, "NotFound", "the server could not find the requested resource");
}

Json Expired(uint64_t asked, uint64_t oldest) {
  return Failure(
      410, "Expired",
      "too old resource version: " + std::to_string(asked) + " (" + std::to_string(oldest) + ")");
}

}  // namespace ringmaster::local
