// metav1.Status bodies with the words of the real API server, so that people and clients read what
// they know.
#pragma once

#include <string>
#include <vector>

#include "operator/kube/kube_api.h"

namespace ringmaster::local {

using kube::Json;
using kube::Resource;

// The error side is a metav1.Status: what the REST server sends as it is.
template <class T>
using Answer = tl::expected<T, Json>;

struct Cause {
  std::string reason;  // FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, ...
  std::string message;
  std::string field;
};

Json Failure(int code, const std::string& reason, const std::string& message);
Json NotFound(const Resource& resource, const std::string& name);
Json AlreadyExists(const Resource& resource, const std::string& name);
Json Conflict(const Resource& resource, const std::string& name, const std::string& why);
Json ModifiedConflict(const Resource& resource, const std::string& name);
Json Invalid(const Resource& resource, const std::string& name, const std::vector<Cause>& causes);
Json BadRequest(const std::string& message);
Json CannotDecode(const Resource& resource, const std::string& why);
Json NoSuchPath();
Json Expired(uint64_t asked, uint64_t oldest);

}  // namespace ringmaster::local
