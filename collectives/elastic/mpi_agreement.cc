#include "collectives/elastic/mpi_agreement.h"

#include <vector>

namespace ringmaster::elastic {
namespace {

// The first character of what a rank says. What it says has at most 500 bytes.
constexpr char kHas = '+', kHasNot = '-';
constexpr size_t kMostSaid = 400;

}  // namespace

Status AgreeOnMpi(process_manager::ProcessManager* manager, const std::string& step,
                  const Status& own, const std::string& name,
                  process_manager::Clock::time_point deadline) {
  const std::string mine = (own.ok() ? kHas + name : kHasNot + own.message()).substr(0, kMostSaid);
  std::vector<std::string> said;
  if (Status s = manager->Exchange(step, mine, deadline, &said); !s.ok()) return s;
  // A rank's own trouble comes first: its message is whole.
  if (!own.ok()) return own;
  for (size_t rank = 0; rank < said.size(); ++rank) {
    const std::string who = "rank " + std::to_string(rank);
    if (said[rank].empty() || said[rank].front() != kHas) {
      return {RM_ERR_UNAVAILABLE,
              who + " can't use MPI: " + (said[rank].empty() ? "" : said[rank].substr(1))};
    }
    if (said[rank] == mine) continue;
    return {RM_ERR_UNAVAILABLE, "the ranks have different MPIs: rank " +
                                    std::to_string(manager->rank()) + " has " + name + ", " + who +
                                    " has " + said[rank].substr(1)};
  }
  return {};
}

}  // namespace ringmaster::elastic
