// What the ranks of a view do together: the calls of its communicator, all ranks in one order.
//
// A call is not one moment. Each rank gives its part when it comes to the call, and leaves it some
// time after all that it needs have given theirs; faults fall in between, so some ranks may have
// left a call that others never will. Plain data of one view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/engine/buffer.h"
#include "tests/sim/names.h"

namespace ringmaster::app::sim {

enum class Call : std::uint8_t {
  kExchange,  // what each rank holds
  kHandover,  // a result that some lack, from the lowest rank that holds it
  kState,     // the donor's state, for joiners
  kLoaded,    // all joiners have it
  kVote,      // what runs next
  kReduce,    // one operation
  kConfirm,   // all have executed what gives each rank a result of its own
};

// What a rank gives to a call: how far it is, and what the call is for.
struct Given {
  bool there = false;
  int pod = 0, slot = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t number = 0;  // of its next operation
  std::int64_t step = 0;     // steps that its script has seen the end of
  std::size_t done = 0;      // operations of the next one
  std::uint64_t model = 0;
  bool holds = false;
  bool armed = false;
  std::vector<std::byte> holding;          // to the exchange
  std::shared_ptr<engine::Buffer> result;  // to a hand-over
  // Somebody was gone when this rank wanted to leave the call: its part had come, or never will.
  std::optional<bool> lost;
};

// The worker that gave it, for people.
inline std::string NameOf(const Given& given) {
  return UidOf(given.pod) + "/" + std::to_string(given.slot) + "." +
         std::to_string(given.incarnation);
}

struct Stage {
  Call call = Call::kVote;
  std::uint64_t number = 0;  // of the operation that it is about
  int giver = -1;            // the rank whose part is enough; -1: all are needed
  bool ready = false;        // all that is needed has been given
  std::vector<Given> given;  // by rank
  std::shared_ptr<engine::Buffer> result;
};

struct Ring {
  std::vector<Stage> stages;
  bool slow = false;           // one call after the other, in time; else all at once
  std::optional<Given> start;  // how far the first rank was that had recovered
};

}  // namespace ringmaster::app::sim
