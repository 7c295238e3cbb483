#include "tests/sim/script.h"

namespace ringmaster::app::sim {

void Script::Draw(Random* random) {
  for (auto n = random->Between(1, 3); n > 0; --n) {
    const bool own = random->Chance(250);
    program_.push_back(own ? engine::Kind::kReducescatter : engine::Kind::kAllreduce);
  }
  program_.push_back(engine::Kind::kStepEnd);
  together_ = random->Chance(500);
  if (random->Chance(150)) finish_at_ = random->Between(5, 150);
}

}  // namespace ringmaster::app::sim
