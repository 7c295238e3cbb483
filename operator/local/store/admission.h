// What the API server does to objects of the built-in kinds before they are stored: defaults and
// checks. Pure.
#pragma once

#include <string>
#include <vector>

#include "operator/local/store/status.h"

namespace ringmaster::local {

// How the API server treats a resource.
struct Traits {
  bool status = false;            // has the status subresource
  bool status_on_create = false;  // keeps a status that comes with the object
  bool generation = false;
  bool unconditional_update = true;  // a PUT without resourceVersion is allowed
};

Traits TraitsOf(const Resource& resource);

// Paths that a field selector may name.
std::vector<std::string> SelectableFields(const Resource& resource);

void SetDefaults(const Resource& resource, Json& object);
std::vector<Cause> CheckCreate(const Resource& resource, const Json& object);
// A value that can't be read as what it should be (a time, base64): a bad request.
Answer<void> CheckFormat(const Resource& resource, const Json& object);
std::vector<Cause> CheckUpdate(const Resource& resource, const Json& before, const Json& after);

// What the CEL rules of the CRD refuse, in their words: a HorovodJob that its schema has passed,
// and the one that it replaces or null. The parser knows the rules.
std::vector<Cause> CheckJob(const Json* before, const Json& job);

}  // namespace ringmaster::local
