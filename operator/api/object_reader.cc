#include "operator/api/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace ringmaster::api {
namespace {

const Json kNull;

std::size_t EditDistance(std::string_view a, std::string_view b) {
  // Compares in lower case, so that minreplicas finds minReplicas.
  auto lower = [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

bool IsWhole(const Json& value) {
  return value.is_number_integer() ||
         (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
}

bool IsWithin(const Json& value, std::int64_t low, std::int64_t high) {
  if (value.is_number_float()) {
    return value.get<double>() >= static_cast<double>(low) &&
           value.get<double>() <= static_cast<double>(high);
  }
  const bool too_big = value.is_number_unsigned() &&
                       value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
  return !too_big && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names) {
  std::string best;
  // Two swapped letters are an edit distance of two, so even a word of four letters may differ by
  // two.
  const std::size_t allowed = word.size() < 4 ? 1 : word.size() < 9 ? 2 : 3;
  std::size_t best_distance = allowed + 1;
  for (const std::string& name : names) {
    const auto [shorter, longer] = std::minmax({word.size(), name.size()});
    if (longer - shorter >= best_distance) continue;  // at least this many letters are missing
    const std::size_t distance = EditDistance(word, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

const char* TypeName(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_float:
      return "a number with a fraction";
    case Json::value_t::null:
      return "nothing";
    default:
      return "a number";
  }
}

std::string Show(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

ObjectReader::ObjectReader(const Json& object, std::string path, FieldErrors* errors)
    : object_(object.is_object() ? object : kNull), path_(std::move(path)), errors_(errors) {
  if (!object.is_object()) {
    errors_->push_back(
        {path_, fmt::format("{} is {}: must be an object", Show(object), TypeName(object))});
  }
}

std::string ObjectReader::PathOf(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void ObjectReader::Error(const std::string& name, std::string message) {
  errors_->push_back({name.empty() ? path_ : PathOf(name), std::move(message)});
}

const Json* ObjectReader::Find(const std::string& name) {
  asked_.push_back(name);
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool ObjectReader::Has(const std::string& name) { return Find(name) != nullptr; }

const Json& ObjectReader::Raw(const std::string& name) {
  const Json* value = Find(name);
  return value == nullptr ? kNull : *value;
}

void ObjectReader::WrongType(const std::string& name, const Json& value, const char* wanted) {
  Error(name, fmt::format("{} is {}: must be {}", Show(value), TypeName(value), wanted));
}

bool ObjectReader::CheckInt(const std::string& path, const Json& value, std::int64_t low,
                            std::int64_t high) {
  if (!IsWhole(value)) {
    errors_->push_back({path, fmt::format("{} is {}: must be a whole number from {} to {}",
                                          Show(value), TypeName(value), low, high)});
    return false;
  }
  if (!IsWithin(value, low, high)) {
    errors_->push_back(
        {path, fmt::format("{} is out of range: must be from {} to {}", Show(value), low, high)});
    return false;
  }
  return true;
}

void ObjectReader::Int(const std::string& name, std::int64_t low, std::int64_t high, int* out) {
  const Json* value = Find(name);
  if (value != nullptr && CheckInt(PathOf(name), *value, low, high)) *out = value->get<int>();
}

void ObjectReader::OptionalInt(const std::string& name, std::int64_t low, std::int64_t high,
                               std::optional<int>* out) {
  const Json* value = Find(name);
  if (value != nullptr && CheckInt(PathOf(name), *value, low, high)) *out = value->get<int>();
}

void ObjectReader::Bool(const std::string& name, bool* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return WrongType(name, *value, "true or false");
  *out = value->get<bool>();
}

void ObjectReader::String(const std::string& name, std::string* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return WrongType(name, *value, "a string");
  *out = value->get<std::string>();
}

void ObjectReader::IntList(const std::string& name, std::int64_t low, std::int64_t high,
                           std::vector<int>* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return WrongType(name, *value, "a list of whole numbers");
  for (std::size_t i = 0; i < value->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", PathOf(name), i);
    if (CheckInt(path, (*value)[i], low, high)) out->push_back((*value)[i].get<int>());
  }
}

void ObjectReader::StringList(const std::string& name, std::vector<std::string>* out) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return WrongType(name, *value, "a list of strings");
  for (std::size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    if (item.is_string()) {
      out->push_back(item.get<std::string>());
    } else {
      WrongType(fmt::format("{}[{}]", name, i), item, "a string (put it in quotes)");
    }
  }
}

void ObjectReader::AtMost(const std::string& name, std::size_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (value->is_array() && value->size() > most) {
    Error(name, fmt::format("has {} elements: at most {} are allowed", value->size(), most));
  } else if (value->is_string() && value->get_ref<const std::string&>().size() > most) {
    Error(name, fmt::format("{} is too long: at most {} characters", Show(*value), most));
  }
}

void ObjectReader::NoTwins(const std::string& name) {
  const Json* list = Find(name);
  if (list == nullptr || !list->is_array()) return;
  std::set<Json> seen;
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (seen.insert((*list)[i]).second) continue;
    Error(fmt::format("{}[{}]", name, i), fmt::format("{} is there twice", Show((*list)[i])));
  }
}

int ObjectReader::EnumIndex(const std::string& name, const std::vector<std::string>& allowed) {
  const Json* value = Find(name);
  if (value == nullptr) return -1;
  if (value->is_string()) {
    const auto at = std::find(allowed.begin(), allowed.end(), value->get<std::string>());
    if (at != allowed.end()) return static_cast<int>(at - allowed.begin());
  }
  Error(name, fmt::format("{} is not allowed: must be one of {}", Show(*value),
                          fmt::join(allowed, ", ")));
  return -1;
}

void ObjectReader::Object(const std::string& name, bool required,
                          const std::function<void(ObjectReader&)>& read) {
  const Json* value = Find(name);
  if (value == nullptr) {
    if (required) Error(name, "is required");
    return;
  }
  if (!value->is_object()) return WrongType(name, *value, "an object");
  ObjectReader reader(*value, PathOf(name), errors_);
  read(reader);
}

void ObjectReader::ObjectList(const std::string& name,
                              const std::function<void(ObjectReader&)>& read) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_array()) return WrongType(name, *value, "a list");
  for (std::size_t i = 0; i < value->size(); ++i) {
    ObjectReader reader((*value)[i], fmt::format("{}[{}]", PathOf(name), i), errors_);
    if ((*value)[i].is_object()) read(reader);
  }
}

void ObjectReader::RefuseUnknown() {
  if (!object_.is_object()) return;
  for (const auto& [name, value] : object_.items()) {
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    const std::string guess = DidYouMean(name, asked_);
    errors_->push_back({PathOf(name),
                        guess.empty()
                            ? fmt::format("unknown field; known here: {}", fmt::join(asked_, ", "))
                            : fmt::format("unknown field; did you mean \"{}\"?", guess),
                        true});
  }
}

void ObjectReader::RefuseTypos(const std::vector<std::string>& names) {
  if (!object_.is_object()) return;
  for (const auto& [name, value] : object_.items()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
    const std::string guess = DidYouMean(name, names);
    if (!guess.empty()) Error(name, fmt::format("unknown field; did you mean \"{}\"?", guess));
  }
}

}  // namespace ringmaster::api
