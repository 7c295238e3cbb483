#include "common/fields/fields.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace ringmaster::fields {
namespace {

// 2^53: up to here a double can represent every whole number.
constexpr double kLargestWhole = 9007199254740992.0;

const Json& Null() {
  static const Json null;
  return null;
}

std::string TextOf(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::int64_t IntegerOf(const Json& value, std::int64_t otherwise) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return number <= most ? static_cast<std::int64_t>(number) : otherwise;
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return otherwise;
  const double number = value.get<double>();
  return std::abs(number) <= kLargestWhole ? static_cast<std::int64_t>(number) : otherwise;
}

const Json& ListOf(const Json& value) {
  static const Json empty = Json::array();
  return value.is_array() ? value : empty;
}

const Json& ObjectOf(const Json& value) {
  static const Json empty = Json::object();
  return value.is_object() ? value : empty;
}

}  // namespace

const Json& Member(const Json& object, const char* name) {
  if (!object.is_object()) return Null();
  const auto at = object.find(name);
  return at == object.end() ? Null() : *at;
}

const Json& At(const Json& object, const char* pointer) {
  const Json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : Null();
}

std::string Text(const Json& object, const char* name) { return TextOf(Member(object, name)); }
std::string TextAt(const Json& object, const char* pointer) { return TextOf(At(object, pointer)); }

bool Flag(const Json& object, const char* name, bool otherwise) {
  const Json& value = Member(object, name);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

std::int64_t Integer(const Json& object, const char* name, std::int64_t otherwise) {
  return IntegerOf(Member(object, name), otherwise);
}
std::int64_t IntegerAt(const Json& object, const char* pointer, std::int64_t otherwise) {
  return IntegerOf(At(object, pointer), otherwise);
}

std::uint64_t Unsigned(const Json& object, const char* name, std::uint64_t otherwise) {
  const Json& value = Member(object, name);
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  if (!value.is_number()) return otherwise;
  if (value.get<double>() < 0) return 0;
  const std::int64_t number = IntegerOf(value, -1);  // -1: it does not fit
  return number < 0 ? otherwise : static_cast<std::uint64_t>(number);
}

double Number(const Json& object, const char* name, double otherwise) {
  const Json& value = Member(object, name);
  return value.is_number() ? value.get<double>() : otherwise;
}

const Json& List(const Json& object, const char* name) { return ListOf(Member(object, name)); }
const Json& ListAt(const Json& object, const char* pointer) { return ListOf(At(object, pointer)); }

const Json& Object(const Json& object, const char* name) { return ObjectOf(Member(object, name)); }
const Json& ObjectAt(const Json& object, const char* pointer) {
  return ObjectOf(At(object, pointer));
}

std::vector<std::string> Texts(const Json& object, const char* name) {
  std::vector<std::string> texts;
  for (const Json& value : List(object, name)) {
    if (value.is_string()) texts.push_back(value.get<std::string>());
  }
  return texts;
}

}  // namespace ringmaster::fields
