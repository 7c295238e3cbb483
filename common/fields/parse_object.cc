#include "common/fields/parse_object.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/fields/parse_limits.h"

namespace ringmaster::fields {
namespace {

using Json = nlohmann::json;

// Builds the value as the library's own parser does, but skips metadata.managedFields.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Json Take() { return std::move(root_); }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return Add(value); }
  bool number_unsigned(number_unsigned_t value) override { return Add(value); }
  bool number_float(number_float_t value, const string_t&) override { return Add(value); }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t& value) override { return Add(std::move(value)); }
  bool start_object(std::size_t) override { return Open(Json::value_t::object); }
  bool start_array(std::size_t) override { return Open(Json::value_t::array); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (skipped_depth_ > 0) return true;
    Level& level = levels_.back();
    level.skips_next = level.is_metadata && name == "managedFields";
    level.next_is_metadata = name == "metadata";
    if (!level.skips_next) level.slot = &(*level.value)[std::move(name)];
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Level {
    Json* value = nullptr;
    Json* slot = nullptr;  // of an object: where the next value goes
    bool is_metadata = false;
    bool next_is_metadata = false;
    bool skips_next = false;
  };

  bool Skips() const {
    return skipped_depth_ > 0 || (!levels_.empty() && levels_.back().skips_next);
  }

  template <class T>
  Json* Put(T&& value) {
    if (levels_.empty()) {
      root_ = Json(std::forward<T>(value));
      return &root_;
    }
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(Json(std::forward<T>(value)));
      return &level.value->back();
    }
    *level.slot = Json(std::forward<T>(value));
    return level.slot;
  }
  template <class T>
  bool Add(T&& value) {
    if (!Skips()) Put(std::forward<T>(value));
    return true;
  }
  bool Open(Json::value_t type) {
    if (Skips()) {
      ++skipped_depth_;
      return true;
    }
    const bool is_metadata = !levels_.empty() && levels_.back().next_is_metadata;
    Json* const value = Put(type);
    levels_.push_back({.value = value, .is_metadata = is_metadata});
    return true;
  }
  bool Close() {
    if (skipped_depth_ > 0) {
      --skipped_depth_;
    } else {
      levels_.pop_back();
    }
    return true;
  }

  Json root_;
  std::vector<Level> levels_;  // objects and arrays that are open
  int skipped_depth_ = 0;      // objects and arrays that are open in a skipped value
};

}  // namespace

Json ParseObjectOrDiscard(std::string_view text, const ParseLimits& limits) {
  Builder builder;
  if (!Excess(text, limits).empty() || !Json::sax_parse(text, &builder)) {
    return Json(Json::value_t::discarded);
  }
  return builder.Take();
}

}  // namespace ringmaster::fields
