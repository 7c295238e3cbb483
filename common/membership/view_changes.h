// Sends a view to other members as what changed against its parent, which they have: a few hundred
// bytes, however large the view is. The text of a view and its reading are made once, because a
// coordinator sends the same view to all members and gets it back from each of them.
//
// Nothing here is part of the protocol: either a reader gets exactly the view that was sent, or the
// message counts as lost, and the reader asks for the sender's view.
//
// Thread rule: the thread of the member only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_set>

#include "common/membership/message.h"

namespace ringmaster::membership {

class ViewChanges {
 public:
  // `view` is decided: what follows it may be sent and read as a change from now on.
  void Know(const ViewPtr& view);

  // The text that takes the place of message.value on the way to `to`. Empty: `to` has to get the
  // whole view, because it may not have the parent, or can't read a change; or because the change
  // was sent so often that somebody seems to be unable to read it.
  std::string Encode(const Message& message, const std::string& to);

  // Null: the parent is unknown here, or the text is none of a view.
  ViewPtr Decode(std::string_view text);

 private:
  struct Known {
    ViewPtr view;
    std::unordered_set<std::string> readers;  // uids of its pods that read changes
  };
  struct Change {
    ViewPtr view;
    std::string text;
    std::size_t sent = 0;
  };

  const Known* FindKnown(Epoch epoch) const;
  Change* FindChange(const View& view);
  void Keep(Change change);

  std::deque<Known> known_;     // the newest last
  std::deque<Change> changes_;  // the newest last
};

}  // namespace ringmaster::membership
