// What every write to the API must keep to, whatever the kind: names, preconditions, and the part
// of an object that a (sub)resource may change. Pure, but for random names and ids.
#pragma once

#include <functional>
#include <string>

#include "operator/local/store/status.h"

namespace ringmaster::local {

// The kind, API version and metadata of an object that is written; what is absent is filled in.
Answer<void> CheckKind(const Resource& resource, Json& object);

// The namespace that a create means, by its URL and its object.
Answer<std::string> NamespaceToCreateIn(const Resource& resource, const std::string& url_ns,
                                        const Json& meta);
// The name of an object to create, made up where it has a generateName; `taken` says which are.
Answer<std::string> NameToCreate(const Resource& resource, const Json& meta,
                                 const std::function<bool(const std::string&)>& taken);
// The metadata that the server decides.
void SetIdentity(const Resource& resource, const std::string& ns, const std::string& name,
                 const std::string& now, Json& object);

// Before `object` replaces `live`: checks the uid, resourceVersion and finalizers that it names,
// and gives it back what this (sub)resource may not change.
Answer<void> PrepareUpdate(const Resource& resource, const Json& live, Json& object,
                           const std::string& subresource);
// Applies a JSON patch. The error leaves `object` as it was: 422, it can't be applied, or a few
// operations would make an object of any size or depth.
Answer<void> ApplyJsonPatch(const Json& patch, Json& object);
// Everything but metadata and status: what `generation` counts.
bool SameSpec(Json a, Json b);

}  // namespace ringmaster::local
