// A file with all that one worker writes to its standard output or error, as it wrote it:
// DIR/rank.3/stdout. It is appended to, because a worker that is started again keeps its number.
// A file that can't be written is said once; the worker goes on.
//
// Thread rule: the launcher's one thread.
#pragma once

#include <string>
#include <string_view>

namespace ringmaster::launcher {

class RankFile {
 public:
  // `dir` empty: nothing is kept. `name`: "stdout" or "stderr".
  RankFile(std::string dir, std::string name) : dir_(std::move(dir)), name_(std::move(name)) {}
  ~RankFile() { Close(); }
  RankFile(const RankFile&) = delete;
  RankFile& operator=(const RankFile&) = delete;

  // What follows is of this worker; "standby": of a process that has no number yet.
  void Open(const std::string& label);
  void Append(std::string_view text);

 private:
  void Close();
  void GiveUp(const std::string& path);

  const std::string dir_, name_;
  std::string path_;
  int fd_ = -1;
};

}  // namespace ringmaster::launcher
