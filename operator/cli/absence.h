// What is said of a job or a pod that is not there: what there is instead.
//
// Thread rule: free functions; NotThere() blocks.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "operator/cli/completion.h"
#include "operator/cli/connection.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

// What there is where the name was looked for.
struct Neighbours {
  std::string ns;
  std::vector<std::string> jobs;
  std::map<std::string, std::string> pods;       // by name: their jobs
  std::vector<std::filesystem::path> elsewhere;  // other runs that have a job of the name
};

// One line. `wanted` is what the command takes. Pure.
std::string AbsenceText(NameKind wanted, const std::string& name, const Neighbours& there);

// Makes a failure of an API server's error about the object that the user has named.
Failure NotThere(const inspection::Connection& to, const Surroundings& around, NameKind wanted,
                 const std::string& name, const kube::Error& error);

}  // namespace ringmaster::cli
