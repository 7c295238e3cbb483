#include "tests/sim/worker.h"

namespace ringmaster::app::sim {

Given GivenBy(const Worker& worker) {
  Given given;
  given.there = true;
  given.pod = worker.pod, given.slot = worker.slot, given.incarnation = worker.incarnation;
  given.number = worker.log.next_number();
  given.step = worker.step, given.done = worker.done, given.model = worker.model;
  given.holds = worker.holds;
  given.armed = worker.armed == worker.epoch || !worker.view->train;
  return given;
}

}  // namespace ringmaster::app::sim
