#include "common/fields/parse_object.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::fields {
namespace {

using Json = nlohmann::json;

constexpr UnreadField kAlwaysUnread{"metadata", "managedFields"};

// Builds the value as the library's own parser does, but skips what nobody reads, and refuses what
// is nested too deeply.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(Unread unread, std::size_t depth) : unread_(unread), depth_(depth) {}

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
    level.skips_next = level.has_unread && IsUnread(level.name, name);
    if (level.skips_next) return true;
    auto& member = *level.value->get_ref<Json::object_t&>().try_emplace(std::move(name)).first;
    level.key = member.first;
    level.slot = &member.second;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Level {
    Json* value = nullptr;
    std::string_view name;    // of the field whose value this is, or the list that it is in
    bool has_unread = false;  // whether objects of this name have fields to skip
    // Of an object: the field that comes next.
    std::string_view key;
    Json* slot = nullptr;
    bool skips_next = false;
  };

  bool HasUnread(std::string_view parent) const {
    return parent == kAlwaysUnread.parent ||
           std::any_of(unread_.begin(), unread_.end(),
                       [&](const UnreadField& field) { return field.parent == parent; });
  }
  bool IsUnread(std::string_view parent, std::string_view name) const {
    const auto is_it = [&](const UnreadField& field) {
      return field.parent == parent && field.name == name;
    };
    return is_it(kAlwaysUnread) || std::any_of(unread_.begin(), unread_.end(), is_it);
  }

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
    if (levels_.size() + skipped_depth_ == depth_) return false;
    if (Skips()) {
      ++skipped_depth_;
      return true;
    }
    Level level;
    if (!levels_.empty()) {
      const Level& above = levels_.back();
      level.name = above.value->is_array() ? above.name : above.key;
    }
    level.has_unread = HasUnread(level.name);
    level.value = Put(type);
    levels_.push_back(level);
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

  const Unread unread_;
  const std::size_t depth_;  // that is allowed
  Json root_;
  std::vector<Level> levels_;      // objects and arrays that are open
  std::size_t skipped_depth_ = 0;  // objects and arrays that are open in a skipped value
};

}  // namespace

Json ParseObjectOrDiscard(std::string_view text, const ParseLimits& limits, Unread unread) {
  Builder builder(unread, limits.depth);
  if (text.size() > limits.bytes || !Json::sax_parse(text, &builder)) {
    return Json(Json::value_t::discarded);
  }
  return builder.Take();
}

}  // namespace ringmaster::fields
