// Reads fields of a JSON object. Keeps the first error, which names the field, its value and what
// is allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <tl/expected.hpp>

namespace ringmaster::fields {

class Reader {
 public:
  Reader(const nlohmann::json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json_.is_object()) Fail("", json_, "an object");
  }

  const std::string& error() const { return error_; }
  bool ok() const { return error_.empty(); }
  // Only the first error is kept.
  void Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }
  void Fail(const char* field, const nlohmann::json& value, const char* allowed) {
    std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (text.size() > 60) text = text.substr(0, 60) + "...";
    Fail(Path(field) + ": " + text + " is not " + allowed);
  }
  std::string Path(const char* field) const {
    return path_.empty() ? field : *field == 0 ? path_ : path_ + "." + field;
  }

  // Null if the field is missing or null.
  const nlohmann::json* Find(const char* field) const {
    if (!json_.is_object()) return nullptr;
    auto it = json_.find(field);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  const nlohmann::json* Need(const char* field, const char* allowed) {
    const nlohmann::json* value = Find(field);
    if (!value && ok()) Fail(Path(field) + " is missing; it must be " + allowed);
    return value;
  }

  void String(const char* field, std::string* out, bool required) {
    const char* allowed = "a string";
    const nlohmann::json* value = required ? Need(field, allowed) : Find(field);
    if (!value) return;
    if (!value->is_string()) return Fail(field, *value, allowed);
    *out = value->get<std::string>();
  }
  void Bool(const char* field, bool* out, bool required) {
    const char* allowed = "true or false";
    const nlohmann::json* value = required ? Need(field, allowed) : Find(field);
    if (!value) return;
    if (!value->is_boolean()) return Fail(field, *value, allowed);
    *out = value->get<bool>();
  }
  template <typename Int>
  void Unsigned(const char* field, Int* out, bool required) {
    const char* allowed = "an integer of at least 0 that fits";
    const nlohmann::json* value = required ? Need(field, allowed) : Find(field);
    if (!value) return;
    // The library keeps integers that were built in code as signed, and parsed ones as unsigned.
    bool fits = value->is_number_unsigned() ||
                (value->is_number_integer() && value->get<std::int64_t>() >= 0);
    if (!fits || value->get<std::uint64_t>() > std::numeric_limits<Int>::max()) {
      return Fail(field, *value, allowed);
    }
    *out = static_cast<Int>(value->get<std::uint64_t>());
  }
  // Calls `read(element, path)` for each element; `read` returns an error or an empty string.
  template <typename Read>
  void Array(const char* field, bool required, Read read) {
    const char* allowed = "an array";
    const nlohmann::json* value = required ? Need(field, allowed) : Find(field);
    if (!value) return;
    if (!value->is_array()) return Fail(field, *value, allowed);
    for (std::size_t i = 0; i < value->size() && ok(); ++i) {
      std::string error = read((*value)[i], Path(field) + "[" + std::to_string(i) + "]");
      if (!error.empty()) Fail(std::move(error));
    }
  }

 private:
  const nlohmann::json& json_;
  std::string path_;
  std::string error_;
};

// Takes a value out of `result`, or returns its error for Reader::Array.
template <typename T>
std::string MoveInto(tl::expected<T, std::string> result, T* out) {
  if (!result) return result.error();
  *out = std::move(*result);
  return "";
}

}  // namespace ringmaster::fields
