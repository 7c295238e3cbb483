#include "common/membership/view_changes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/membership/compact_view.h"
#include "common/membership/view_json.h"

namespace ringmaster::membership {
namespace {

using nlohmann::json;

// Members that are a view behind still vote and are still sent views. Of undecided views there are
// as many as there are proposers at a time.
constexpr std::size_t kKnown = 3, kChanges = 4;
// How often each member of the parent may be sent the same change, on average.
constexpr std::size_t kTimes = 4;

// Tells apart views that have the same epoch and are not the same: FNV-1a of what makes a view's
// members and ranks. It protects from defects, not from strangers.
class Digest {
 public:
  void Add(std::string_view text) {
    for (const char c : text) Mix(static_cast<unsigned char>(c));
    Add(text.size());
  }
  void Add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i, number >>= 8) Mix(static_cast<unsigned char>(number & 0xFF));
  }
  std::uint64_t value() const { return value_; }

 private:
  void Mix(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001B3U; }

  std::uint64_t value_ = 0xCBF29CE484222325U;
};

std::uint64_t DigestOf(const View& view) {
  Digest digest;
  digest.Add(view.epoch);
  digest.Add(view.parent);
  digest.Add(view.coordinator);
  for (const Pod& pod : view.pods) {
    digest.Add(pod.uid);
    digest.Add(pod.incarnation);
    digest.Add(pod.address);
  }
  for (const RankEntry& rank : view.ranks) {
    digest.Add(rank.pod);
    digest.Add(rank.slot);
    digest.Add(rank.incarnation);
    digest.Add(rank.tcp);
    digest.Add(rank.shm);
    digest.Add(rank.joined ? 1U : 0U);
  }
  return digest.value();
}

std::string TextOf(const View& view, const View& parent) {
  json change = CompactView(view, &parent);
  change["digest"] = DigestOf(view);
  return change.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void ViewChanges::Know(const ViewPtr& view) {
  if (!view || (!known_.empty() && known_.back().view->epoch >= view->epoch)) return;
  Known known{view, {}};
  for (const Pod& pod : view->pods) {
    if (pod.reads_changes) known.readers.insert(pod.uid);
  }
  known_.push_back(std::move(known));
  if (known_.size() > kKnown) known_.pop_front();
}

std::string ViewChanges::Encode(const Message& message, const std::string& to) {
  if (!message.value) return "";
  const Known* parent = FindKnown(message.value->parent);
  if (parent == nullptr || !parent->readers.contains(to)) return "";
  Change* change = FindChange(*message.value);
  if (change == nullptr) {
    Keep({message.value, TextOf(*message.value, *parent->view)});
    change = &changes_.back();
  }
  return ++change->sent <= kTimes * parent->view->pods.size() ? change->text : "";
}

ViewPtr ViewChanges::Decode(std::string_view text) {
  const auto same = std::find_if(changes_.begin(), changes_.end(),
                                 [&](const Change& change) { return change.text == text; });
  if (same != changes_.end()) return same->view;
  json change = fields::ParseOrDiscard(text);
  if (!change.is_object()) return nullptr;
  const Known* parent = FindKnown(fields::Unsigned(change, "parent"));
  if (parent == nullptr || !ExpandView(&change, ToJson(*parent->view))) return nullptr;
  auto view = ViewFromJson(change);
  if (!view || DigestOf(*view) != fields::Unsigned(change, "digest")) return nullptr;
  Keep({std::make_shared<const View>(std::move(*view)), std::string(text)});
  return changes_.back().view;
}

const ViewChanges::Known* ViewChanges::FindKnown(Epoch epoch) const {
  const auto at = std::find_if(known_.begin(), known_.end(),
                               [&](const Known& known) { return known.view->epoch == epoch; });
  return epoch == 0 || at == known_.end() ? nullptr : &*at;
}

ViewChanges::Change* ViewChanges::FindChange(const View& view) {
  const auto at = std::find_if(changes_.begin(), changes_.end(), [&](const Change& change) {
    return change.view.get() == &view || *change.view == view;
  });
  return at == changes_.end() ? nullptr : &*at;
}

void ViewChanges::Keep(Change change) {
  changes_.push_back(std::move(change));
  if (changes_.size() > kChanges) changes_.pop_front();
}

}  // namespace ringmaster::membership
