// How much a long test repeats, by RINGMASTER_TEST_ROUNDS, which hack/test sets:
//
//   (unset)  all: what CI runs
//   usual    a fifteenth of the simulated schedules, everything else: what is run at a desk
//   small    the same code in fewer combinations: under sanitizers, which make it five to fifteen
//            times slower
#ifndef RINGMASTER_TESTS_SUPPORT_ROUNDS_H_
#define RINGMASTER_TESTS_SUPPORT_ROUNDS_H_

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace ringmaster::support {

inline bool RoundsAre(std::string_view name) {
  const char* rounds = std::getenv("RINGMASTER_TEST_ROUNDS");
  return rounds != nullptr && rounds == name;
}
inline bool SmallRounds() { return RoundsAre("small"); }

template <typename T>
T Rounds(T normal, T small) {
  return SmallRounds() ? small : normal;
}

inline std::uint64_t Schedules(std::uint64_t all, std::uint64_t small) {
  return Rounds(RoundsAre("usual") ? all / 15 : all, small);
}

}  // namespace ringmaster::support

#endif  // RINGMASTER_TESTS_SUPPORT_ROUNDS_H_
