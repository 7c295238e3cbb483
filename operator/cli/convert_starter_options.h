// The options of what starts the processes of a training job, as far as they matter where it is
// taken out of a command: how many words follow each. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace ringmaster::cli::conversion {

// Names are without the dashes in front.
struct StarterOptions {
  std::set<std::string> flags, of_one_word, of_two_words;

  // How many words follow an option; none for one that is not known here.
  std::optional<int> WordsBehind(const std::string& name) const;
};

// Of horovodrun 0.28, of Open MPI's mpirun and of MPICH's and Intel MPI's mpiexec. What one of them
// takes for a flag, and another doesn't, is left out.
const StarterOptions& OptionsOfMpi();
// Of torchrun, with dashes for underscores.
const StarterOptions& OptionsOfTorchrun();

}  // namespace ringmaster::cli::conversion
