#include "operator/local/server/rest_messages.h"

#include "common/fields/int.h"
#include "common/fields/parse.h"
#include "operator/kube/yaml.h"

namespace ringmaster::local {

using httplib::Request;
using httplib::Response;

std::string Param(const Request& request, const char* name) {
  return request.has_param(name) ? request.get_param_value(name) : "";
}

bool Flag(const Request& request, const char* name) {
  std::string value = Param(request, name);
  return value == "true" || value == "1";
}

void Send(Response& response, int code, const Json& body) {
  response.status = code;
  response.set_content(body.dump(-1, ' ', false, Json::error_handler_t::replace),
                       "application/json");
}

void SendStatus(Response& response, const Json& status) {
  Send(response, status.value("code", 500), status);
}

bool WantsTable(const Request& request) {
  return request.get_header_value("Accept").find("as=Table") != std::string::npos;
}

Answer<Json> Body(const Request& request) {
  if (request.body.empty()) return Json::object();
  Json json = fields::ParseOrDiscard(request.body);
  if (!json.is_discarded()) return json;
  if (request.get_header_value("Content-Type").find("yaml") != std::string::npos) {
    auto documents = kube::YamlToJson(request.body);
    if (documents && documents->size() == 1) return documents->front();
    return tl::unexpected(
        BadRequest("error decoding YAML: " + (documents ? "not one document" : documents.error())));
  }
  return tl::unexpected(BadRequest("the body is not valid JSON"));
}

std::string ManagerOf(const Request& request) {
  std::string manager = Param(request, "fieldManager");
  if (manager.empty()) {
    std::string agent = request.get_header_value("User-Agent");
    manager = agent.substr(0, agent.find('/'));
  }
  return manager.empty() ? "unknown" : manager;
}

kube::DeleteOptions ReadDeleteOptions(const Json& body, const Request& request) {
  kube::DeleteOptions options;
  if (const int seconds = fields::Int(body, "gracePeriodSeconds", -1); seconds >= 0) {
    options.grace_period_seconds = seconds;
  } else if (std::string grace = Param(request, "gracePeriodSeconds"); !grace.empty()) {
    options.grace_period_seconds = std::atoi(grace.c_str());
  }
  options.propagation = body.value("propagationPolicy", Param(request, "propagationPolicy"));
  if (body.value("orphanDependents", false)) options.propagation = "Orphan";
  const Json conditions = body.value("preconditions", Json::object());
  options.uid = conditions.value("uid", "");
  options.resource_version = conditions.value("resourceVersion", "");
  return options;
}

std::string Line(const std::string& type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump(-1, ' ', false,
                                                       Json::error_handler_t::replace) +
         "\n";
}

std::string FieldSelectorOf(const Request& request, bool core_event) {
  std::string text = Param(request, "fieldSelector");
  for (size_t at; core_event && (at = text.find("involvedObject.")) != std::string::npos;) {
    text.replace(at, 15, "regarding.");
  }
  return text;
}

}  // namespace ringmaster::local
