// How much a long test repeats. Sanitizers make code five to fifteen times slower, so hack/test
// sets RINGMASTER_TEST_ROUNDS=small for them: the same code runs, in fewer combinations.
#ifndef RINGMASTER_TESTS_SUPPORT_ROUNDS_H_
#define RINGMASTER_TESTS_SUPPORT_ROUNDS_H_

#include <cstdlib>
#include <string_view>

namespace ringmaster::support {

inline bool SmallRounds() {
  const char* rounds = std::getenv("RINGMASTER_TEST_ROUNDS");
  return rounds != nullptr && std::string_view(rounds) == "small";
}

template <typename T>
T Rounds(T normal, T small) {
  return SmallRounds() ? small : normal;
}

}  // namespace ringmaster::support

#endif  // RINGMASTER_TESTS_SUPPORT_ROUNDS_H_
