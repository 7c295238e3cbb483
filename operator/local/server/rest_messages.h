// What the handlers of RestServer read from a request, and how they answer.
#pragma once

#include <httplib.h>

#include <string>

#include "operator/kube/kube_api.h"
#include "operator/local/store/status.h"

namespace ringmaster::local {

// A parameter of the query; empty if it is not there.
std::string Param(const httplib::Request& request, const char* name);
// A parameter that says yes.
bool Flag(const httplib::Request& request, const char* name);
// kubectl asks for the columns, not for the objects.
bool WantsTable(const httplib::Request& request);
// The body: JSON, or YAML as apply sends it.
Answer<Json> Body(const httplib::Request& request);
// The field manager of a write: as the caller says, else the name of its program.
std::string ManagerOf(const httplib::Request& request);
kube::DeleteOptions ReadDeleteOptions(const Json& body, const httplib::Request& request);
// Of core/v1 events (`core_event`) with the field names of events.k8s.io.
std::string FieldSelectorOf(const httplib::Request& request, bool core_event);

void Send(httplib::Response& response, int code, const Json& body);
void SendStatus(httplib::Response& response, const Json& status);
// One event of a watch.
std::string Line(const std::string& type, const Json& object);

}  // namespace ringmaster::local
