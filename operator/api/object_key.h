// "NAMESPACE/NAME": how work queues, indexes and logs name an object whose resource is known.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ringmaster::api {

struct ObjectKey {
  std::string ns, name;
};

std::string KeyText(std::string_view ns, std::string_view name);
// Of the object's metadata; a part that is absent is empty.
std::string KeyOf(const nlohmann::json& object);
// Neither part contains a slash. A text without one is a namespace with an empty name.
ObjectKey ParseKey(std::string_view text);

}  // namespace ringmaster::api
