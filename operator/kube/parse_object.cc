#include "operator/kube/parse_object.h"

#include <rapidjson/encodedstream.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster::kube {
namespace {

using Json = nlohmann::json;

constexpr UnreadField kAlwaysUnread{"metadata", "managedFields"};

// Builds the value that nlohmann's own parser would build, but skips what nobody reads, and refuses
// what is nested too deeply. A handler for RapidJSON, which reads about twice as fast: most of what
// an operator computes is to parse what the API server says.
class Builder {
 public:
  using Ch = char;  // RapidJSON asks for it

  Builder(Unread unread, std::size_t depth) : unread_(unread), depth_(depth) {}

  Json Take() { return std::move(root_); }

  bool Null() { return Add(nullptr); }
  bool Bool(bool value) { return Add(value); }
  bool Int(int value) { return Int64(value); }
  bool Uint(unsigned value) { return Uint64(value); }
  bool Int64(std::int64_t value) { return Add(value); }
  bool Uint64(std::uint64_t value) { return Add(value); }
  bool Double(double value) { return Add(value); }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return false; }  // isn't asked for
  bool String(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view value(text, size);
    return IsUtf8(value) && (Skips() || Add(std::string(value)));
  }
  bool StartObject() { return Open(Json::value_t::object); }
  bool StartArray() { return Open(Json::value_t::array); }
  bool EndObject(rapidjson::SizeType) { return Close(); }
  bool EndArray(rapidjson::SizeType) { return Close(); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    const std::string_view name(text, size);
    if (!IsUtf8(name)) return false;
    if (skipped_depth_ > 0) return true;
    Level& level = levels_.back();
    level.skips_next = level.has_unread && IsUnread(level.name, name);
    if (level.skips_next) return true;
    auto& member = *level.value->get_ref<Json::object_t&>().try_emplace(std::string(name)).first;
    level.key = member.first;
    level.slot = &member.second;
    return true;
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

  // The reader refuses bytes that are not UTF-8, but not an escape for half of a character
  // ("\udc00"), of which it makes the bytes ED B0 80.
  static bool IsUtf8(std::string_view text) {
    for (std::size_t at = text.find('\xed'); at != text.npos; at = text.find('\xed', at + 1)) {
      if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return false;
    }
    return true;
  }

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

// Without recursion, so that the depth is the builder's to limit.
bool Parse(std::string_view text, Builder* builder) {
  rapidjson::MemoryStream bytes(text.data(), text.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(bytes);
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag |
                              rapidjson::kParseValidateEncodingFlag |
                              rapidjson::kParseFullPrecisionFlag;
  return !reader.Parse<kFlags>(stream, *builder).IsError();
}

}  // namespace

Json ParseObjectOrDiscard(std::string_view text, const fields::ParseLimits& limits, Unread unread) {
  Builder builder(unread, limits.depth);
  if (text.size() > limits.bytes || !Parse(text, &builder)) {
    return Json(Json::value_t::discarded);
  }
  return builder.Take();
}

}  // namespace ringmaster::kube
