// Sends a view to other members as what changed against its parent, which they have: a few hundred
// bytes, however large the view is. To a member that has the change its digest is sent. The text of
// a view and its reading are made once, because a coordinator sends the same view to all members
// and gets it back from each of them.
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
#include <unordered_map>
#include <vector>

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

  // Null: the parent is unknown here, or the text is none of a view. `from`: who sent it.
  ViewPtr Decode(std::string_view text, const std::string& from);

 private:
  struct Known {
    ViewPtr view;
    // Of its pods that read changes: uid and index.
    std::unordered_map<std::string, std::size_t> readers;
  };
  // What another member has of a change, as far as is known here.
  enum class Has : std::uint8_t {
    kNothing,
    kPerhaps,  // it was sent the text
    kSurely,   // it has sent the text or the digest
    kAsks,     // it was sent the digest, and nothing has come from it since
  };
  struct Change {
    ViewPtr view;
    std::string text;
    std::string by_digest;  // takes the place of the text
    std::vector<Has> has;   // by index of the pods of the parent
    std::size_t sent = 0;
  };

  const Known* FindKnown(Epoch epoch) const;
  // What is sent to a member that has so much of it.
  static const std::string& TextFor(MessageKind kind, const Change& change, Has* has);
  void NoteSender(const std::string& from, bool by_digest, Change* change) const;
  Change* FindChange(const View& view);
  Change* Keep(ViewPtr view, std::string text, const Known& parent);

  std::deque<Known> known_;     // the newest last
  std::deque<Change> changes_;  // the newest last
};

}  // namespace ringmaster::membership
