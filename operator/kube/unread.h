// Fields of Kubernetes' objects that nobody reads: parsing an object without them takes half the
// time and memory.
#pragma once

#include <span>
#include <string_view>

namespace ringmaster::kube {

// The field `name` of every object that is the value of `parent`, or an element of the list that
// is.
struct UnreadField {
  std::string_view parent;
  std::string_view name;
};
// The fields must live as long as this is used: they are constants.
using Unread = std::span<const UnreadField>;

}  // namespace ringmaster::kube
