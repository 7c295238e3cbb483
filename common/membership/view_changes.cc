#include "common/membership/view_changes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/fnv/fnv.h"
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

// Of what makes a view's members and ranks, which the reader puts together from its own copy of the
// parent. It protects from defects, not from strangers.
std::uint64_t DigestOf(const View& view) {
  fnv::Hash hash;
  hash.Number(view.epoch).Number(view.parent).Text(view.coordinator);
  for (const Pod& pod : view.pods) {
    hash.Text(pod.uid).Number(pod.incarnation).Text(pod.address);
  }
  for (const RankEntry& rank : view.ranks) {
    hash.Number(rank.pod).Number(rank.slot).Number(rank.incarnation);
    hash.Text(rank.tcp).Text(rank.shm).Number(rank.joined ? 1 : 0);
  }
  return hash.value();
}

std::string TextOf(const View& view, const View& parent) {
  json change = CompactView(view, &parent);
  change["digest"] = DigestOf(view);
  return change.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Of the text: two proposals may differ in less than the digest above shows, such as their reason.
std::string ByDigest(std::string_view text) {
  return "digest:" + std::to_string(fnv::Hash().Bytes(text).value());
}

}  // namespace

void ViewChanges::Know(const ViewPtr& view) {
  if (!view || (!known_.empty() && known_.back().view->epoch >= view->epoch)) return;
  Known known{view, {}};
  for (std::size_t i = 0; i < view->pods.size(); ++i) {
    if (view->pods[i].reads_changes) known.readers.emplace(view->pods[i].uid, i);
  }
  known_.push_back(std::move(known));
  if (known_.size() > kKnown) known_.pop_front();
}

std::string ViewChanges::Encode(const Message& message, const std::string& to) {
  if (!message.value) return "";
  const Known* parent = FindKnown(message.value->parent);
  if (parent == nullptr) return "";
  const auto reader = parent->readers.find(to);
  if (reader == parent->readers.end()) return "";
  Change* change = FindChange(*message.value);
  if (change == nullptr) {
    change = Keep(message.value, TextOf(*message.value, *parent->view), *parent);
  }
  if (++change->sent > kTimes * parent->view->pods.size()) return "";
  return TextFor(message.kind, *change, &change->has[reader->second]);
}

// A proposal is repeated because it may not have arrived, so it has the text. Before a decision
// there was a proposal, which has mostly arrived. Who does not know the digest asks, and is sent
// the text.
const std::string& ViewChanges::TextFor(MessageKind kind, const Change& change, Has* has) {
  const bool by_digest =
      *has == Has::kSurely || (*has == Has::kPerhaps && kind == MessageKind::kDecided);
  if (by_digest) {
    *has = Has::kAsks;
    return change.by_digest;
  }
  if (*has == Has::kNothing) *has = Has::kPerhaps;
  return change.text;
}

// Who sends the text again after it was sent the digest may be unable to read that.
void ViewChanges::NoteSender(const std::string& from, bool by_digest, Change* change) const {
  const Known* parent = FindKnown(change->view->parent);
  if (parent == nullptr) return;
  const auto sender = parent->readers.find(from);
  if (sender == parent->readers.end()) return;
  Has& has = change->has[sender->second];
  if (by_digest || has != Has::kAsks) has = Has::kSurely;
}

ViewPtr ViewChanges::Decode(std::string_view text, const std::string& from) {
  const auto same = std::find_if(changes_.begin(), changes_.end(), [&](const Change& change) {
    return change.text == text || change.by_digest == text;
  });
  if (same != changes_.end()) {
    NoteSender(from, same->by_digest == text, &*same);
    return same->view;
  }
  json change = fields::ParseOrDiscard(text);
  if (!change.is_object()) return nullptr;
  const Known* parent = FindKnown(fields::Unsigned(change, "parent"));
  if (parent == nullptr || !ExpandView(&change, ToJson(*parent->view))) return nullptr;
  auto view = ViewFromJson(change);
  if (!view || DigestOf(*view) != fields::Unsigned(change, "digest")) return nullptr;
  Change* read = Keep(std::make_shared<const View>(std::move(*view)), std::string(text), *parent);
  NoteSender(from, /*by_digest=*/false, read);
  return read->view;
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

ViewChanges::Change* ViewChanges::Keep(ViewPtr view, std::string text, const Known& parent) {
  std::string by_digest = ByDigest(text);
  changes_.push_back({std::move(view), std::move(text), std::move(by_digest),
                      std::vector<Has>(parent.view->pods.size())});
  if (changes_.size() > kChanges) changes_.pop_front();
  return &changes_.back();
}

}  // namespace ringmaster::membership
