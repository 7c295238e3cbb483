// Makes scripts that complete the command line in a shell, from the commands and their options.
// They don't complete jobs and pods, because that would need an API call at each tab.
#pragma once

#include <string>
#include <vector>

namespace ringmaster::cli {

struct CommandWords {
  std::string name;
  std::string about;
  std::vector<std::string> options;    // "--watch", "-w"
  std::vector<std::string> with_file;  // those of `options` that take a file or a folder
  bool files = false;                  // the arguments are files
};

// `shell` is bash, zsh or fish.
std::string CompletionScript(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace ringmaster::cli
