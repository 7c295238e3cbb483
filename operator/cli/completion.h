// Scripts that complete the words of the command line in a shell, made from the commands that there
// are. Jobs and pods are not completed: that would ask an API server at every tab.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::cli {

struct CommandWords {
  std::string name;
  std::string about;
  std::vector<std::string> options;    // "--watch", "-w"
  std::vector<std::string> with_file;  // those of the options that take a file or a folder
  bool files = false;                  // its arguments are files
};

// `shell`: bash, zsh or fish.
std::string CompletionScript(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace ringmaster::cli
