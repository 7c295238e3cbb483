// Reads a JSON object field by field and collects all errors with their paths. Fields that were not
// asked for are unknown. The names that were asked for serve to suggest a correction of typos.
#pragma once

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/api/field_error.h"

namespace ringmaster::api {

// The name most similar to `word`, if `word` could be a typo of it; else empty.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

// A value for people: strings are quoted, long values cut.
std::string Show(const Json& value);

// Accepts 3, and also 3.0, as Kubernetes does.
bool IsWhole(const Json& value);
// A number from `low` to `high`. The value itself may exceed any integer type.
bool IsWithin(const Json& value, std::int64_t low, std::int64_t high);

// "a list", "a number with a fraction", ...
const char* TypeName(const Json& value);

class ObjectReader {
 public:
  // `object` must outlive the reader. Reports an error if it is not an object.
  ObjectReader(const Json& object, std::string path, FieldErrors* errors);

  // Each method leaves *out unchanged if the field is absent or wrong. An explicit null counts as
  // absent, as in Kubernetes.
  bool Has(const std::string& name);
  void Int(const std::string& name, std::int64_t low, std::int64_t high, int* out);
  void OptionalInt(const std::string& name, std::int64_t low, std::int64_t high,
                   std::optional<int>* out);
  void Bool(const std::string& name, bool* out);
  void String(const std::string& name, std::string* out);
  void IntList(const std::string& name, std::int64_t low, std::int64_t high, std::vector<int>* out);
  void StringList(const std::string& name, std::vector<std::string>* out);
  template <class E>
  void Enum(const std::string& name, std::initializer_list<std::pair<const char*, E>> values,
            E* out) {
    std::vector<std::string> allowed;
    for (const auto& value : values) allowed.push_back(value.first);
    const int at = EnumIndex(name, allowed);
    if (at >= 0) *out = (values.begin() + at)->second;
  }
  // Calls `read` with a reader of the field, if the field exists; `required` reports its absence.
  void Object(const std::string& name, bool required,
              const std::function<void(ObjectReader&)>& read);
  void ObjectList(const std::string& name, const std::function<void(ObjectReader&)>& read);
  // Reports a list of more than `most` elements, or a string of more than `most` bytes.
  void AtMost(const std::string& name, std::size_t most);
  // Reports list elements that equal an earlier one.
  void NoTwins(const std::string& name);
  // The field's value, null if absent; it counts as known.
  const Json& Raw(const std::string& name);

  void Error(const std::string& name, std::string message);
  std::string PathOf(const std::string& name) const;
  const std::string& path() const { return path_; }
  FieldErrors* errors() { return errors_; }

  // Reports the fields that were not asked for.
  void RefuseUnknown();
  // Reports the fields that look like a typo of one of `names`. It is for metadata, which belongs
  // to Kubernetes and may have fields that we don't know.
  void RefuseTypos(const std::vector<std::string>& names);

 private:
  const Json* Find(const std::string& name);
  void WrongType(const std::string& name, const Json& value, const char* wanted);
  bool CheckInt(const std::string& path, const Json& value, std::int64_t low, std::int64_t high);
  int EnumIndex(const std::string& name, const std::vector<std::string>& allowed);

  const Json& object_;
  const std::string path_;
  FieldErrors* const errors_;
  std::vector<std::string> asked_;
};

}  // namespace ringmaster::api
