#include "operator/kube/errors.h"

#include <algorithm>

#include "common/fields/fields.h"
#include "operator/kube/resources.h"

namespace ringmaster::kube {
namespace {

constexpr uint64_t kLongestWait = 24 * 3600;

ErrorCode CodeFor(int http_status, const std::string& reason) {
  if (reason == "AlreadyExists") return ErrorCode::kAlreadyExists;
  switch (http_status) {
    case 400:
    case 405:
    case 413:
    case 415:
    case 422:
      return ErrorCode::kInvalid;
    case 401:
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kConflict;
    case 410:
      return ErrorCode::kGone;
    case 429:
      return ErrorCode::kTooManyRequests;
    default:
      return http_status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
  }
}

}  // namespace

std::string Asked(const std::string& verb, const Resource& resource, const std::string& ns,
                  const std::string& name, const std::string& subresource) {
  std::string text = verb + " " + QualifiedName(resource);
  if (!subresource.empty()) text += "/" + subresource;
  if (!name.empty()) text += " \"" + name + "\"";
  if (resource.namespaced && !ns.empty()) text += " in namespace \"" + ns + "\"";
  return text;
}

Error ErrorFromStatus(const std::string& asked, int http_status, const Json& status) {
  Error error;
  error.http_status = http_status;
  if (status.is_object()) {
    error.reason = fields::Text(status, "reason");
    std::string message = fields::Text(status, "message");
    error.message = asked + ": " + (message.empty() ? "no message" : message);
    if (auto details = status.find("details"); details != status.end() && details->is_object()) {
      auto seconds = details->find("retryAfterSeconds");
      if (seconds != details->end() && seconds->is_number_unsigned()) {
        error.retry_after = std::chrono::seconds(std::min(seconds->get<uint64_t>(), kLongestWait));
      }
    }
  } else {
    std::string body = status.is_string() ? status.get<std::string>() : "";
    if (body.size() > 200) body = body.substr(0, 200) + "...";
    error.message = asked + ": HTTP status " + std::to_string(http_status);
    if (!body.empty()) error.message += ": " + body;
  }
  error.code = CodeFor(http_status, error.reason);
  return error;
}

Error Unavailable(const std::string& asked, const std::string& why) {
  return Error{ErrorCode::kUnavailable, 0, "", asked + ": " + why};
}

Error Internal(const std::string& asked, const std::string& why) {
  return Error{ErrorCode::kInternal, 0, "", asked + ": " + why};
}

tl::unexpected<Error> Fail(ErrorCode code, const std::string& message) {
  return tl::unexpected(Error{code, 0, "", message});
}

std::string_view CodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kInvalid:
      return "Invalid";
    case ErrorCode::kForbidden:
      return "Forbidden";
    case ErrorCode::kGone:
      return "Gone";
    case ErrorCode::kTooManyRequests:
      return "TooManyRequests";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kInternal:
      return "Internal";
  }
  return "Unknown";
}

}  // namespace ringmaster::kube
