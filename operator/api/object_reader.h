// Reads a JSON object field by field and collects everything that is wrong with it, each with its
// path. A field that nobody asked for is unknown, and the names that were asked for are what a typo
// is compared with.
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

// The name nearest to `word` if it could be a typo of it, else empty.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

// A value for people: strings in quotes, long ones cut.
std::string Show(const Json& value);

// 3, and 3.0 too, as in Kubernetes.
bool IsWhole(const Json& value);
// A number from `low` to `high`, however large it is itself.
bool IsWithin(const Json& value, std::int64_t low, std::int64_t high);

// "a list", "a number with a fraction", ...
const char* TypeName(const Json& value);

class ObjectReader {
 public:
  // `object` has to outlive the reader. Reports it if it is no object.
  ObjectReader(const Json& object, std::string path, FieldErrors* errors);

  // Each leaves *out as it is when the field is absent or wrong. An explicit null counts as absent,
  // as in Kubernetes.
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
  // Calls `read` with the field's reader if the field is there; `required` reports its absence.
  void Object(const std::string& name, bool required,
              const std::function<void(ObjectReader&)>& read);
  void ObjectList(const std::string& name, bool required,
                  const std::function<void(ObjectReader&)>& read);
  // Reports a list with more elements or a string with more bytes than `most`.
  void AtMost(const std::string& name, std::size_t most);
  // Reports the elements of a list that were there before.
  void NoTwins(const std::string& name);
  // The field as it is, null if absent; it counts as known.
  const Json& Raw(const std::string& name);

  void Error(const std::string& name, std::string message);
  std::string PathOf(const std::string& name) const;
  const std::string& path() const { return path_; }
  FieldErrors* errors() { return errors_; }

  // Reports the fields that nobody asked for.
  void RefuseUnknown();
  // Reports the fields that look like a typo of one in `names`: for metadata, which belongs to
  // Kubernetes and may have fields that we don't know.
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
