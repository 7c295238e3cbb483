#include "collectives/timeline/recent_events.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace ringmaster::timeline {
namespace {

uint64_t WordOf(Clock::time_point at) {
  return static_cast<uint64_t>(at.time_since_epoch().count());
}
uint64_t WordOf(const char* literal) { return reinterpret_cast<uint64_t>(literal); }

Clock::time_point TimeOf(uint64_t word) {
  return Clock::time_point(Clock::duration(static_cast<int64_t>(word)));
}
const char* LiteralOf(uint64_t word) { return reinterpret_cast<const char*>(word); }

}  // namespace

void RecentEvents::Push(const Event& event) {
  const uint64_t turn = pushed_.load(std::memory_order_relaxed);
  Slot& slot = slots_[turn & (slots_.size() - 1)];
  slot.turn.store(2 * turn + 1, std::memory_order_relaxed);
  // A reader that has read one of these words (with acquire) then sees this odd turn or a later
  // one, and so knows that its copy is no whole event.
  const auto put = [&](size_t word, uint64_t value) {
    slot.words[word].store(value, std::memory_order_release);
  };
  const size_t length = std::min(event.name.size(), kLongestName);
  put(Words::kBegin, WordOf(event.begin));
  put(Words::kEnd, WordOf(event.end));
  put(Words::kWhat, WordOf(event.what));
  put(Words::kRowAndLength, static_cast<uint64_t>(event.row) << 32 | length);
  for (size_t i = 0; i < kNumbers; ++i) {
    put(Words::kKeys + i, WordOf(event.numbers[i].key));
    put(Words::kValues + i, static_cast<uint64_t>(event.numbers[i].value));
  }
  const char* const name = event.name.data() + (event.name.size() - length);
  for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
    uint64_t part = 0;
    std::memcpy(&part, name + done, std::min(sizeof part, length - done));
    put(Words::kName + done / sizeof part, part);
  }
  slot.turn.store(2 * turn + 2, std::memory_order_release);
  pushed_.store(turn + 1, std::memory_order_release);
}

bool RecentEvents::Read(uint64_t turn, Event* event) const {
  const Slot& slot = slots_[turn & (slots_.size() - 1)];
  if (slot.turn.load(std::memory_order_acquire) != 2 * turn + 2) return false;
  std::array<uint64_t, Words::kCount> words;
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = slot.words[i].load(std::memory_order_acquire);
  if (slot.turn.load(std::memory_order_relaxed) != 2 * turn + 2) return false;
  event->begin = TimeOf(words[Words::kBegin]);
  event->end = TimeOf(words[Words::kEnd]);
  event->what = LiteralOf(words[Words::kWhat]);
  event->row = static_cast<Row>(words[Words::kRowAndLength] >> 32);
  event->name.resize(words[Words::kRowAndLength] & 0xffffffff);
  std::memcpy(event->name.data(), &words[Words::kName], event->name.size());
  for (size_t i = 0; i < kNumbers; ++i) {
    event->numbers[i] = {LiteralOf(words[Words::kKeys + i]),
                         static_cast<int64_t>(words[Words::kValues + i])};
  }
  return true;
}

std::vector<Event> RecentEvents::Since(Clock::time_point since) const {
  std::vector<Event> events;
  const uint64_t end = pushed_.load(std::memory_order_acquire);
  Event event;
  for (uint64_t turn = end; turn > 0 && end - turn < slots_.size(); --turn) {
    if (!Read(turn - 1, &event)) break;  // all that is older has been overwritten, too
    if (event.end >= since) events.push_back(event);
  }
  return events;
}

}  // namespace ringmaster::timeline
