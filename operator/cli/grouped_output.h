// Writes the lines of several sources that are read at the same time, so that the lines of each
// stand together and the sources come in their order. The source whose turn it is writes at once;
// the lines of the others are kept until then, and a source of which much is kept waits.
//
// Thread rule: any thread, but one at a time for each source. The sources are begun in their order:
// otherwise one that waits could keep the one before it from being read.
#pragma once

#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "common/sync/mutex.h"

namespace ringmaster::cli {

class GroupedOutput {
 public:
  // Of each source that is not at the front up to `most_kept` bytes are kept, and one line more.
  explicit GroupedOutput(std::FILE* out, std::size_t most_kept = std::size_t{1} << 20)
      : out_(out), most_kept_(most_kept) {}

  // One line, with its prefix and without its end.
  void Line(std::size_t source, const std::string& prefix, std::string_view line);
  // The source has no more lines. The turn goes to the next one, even if that has ended already.
  void End(std::size_t source);

 private:
  struct Kept {
    std::string text;
    bool ended = false;
  };
  // Writes what is kept of the source whose turn it is.
  void WriteKept() REQUIRES(mu_);

  std::FILE* const out_;
  const std::size_t most_kept_;
  sync::Mutex mu_;
  sync::CondVar turned_;
  std::size_t front_ GUARDED_BY(mu_) = 0;  // the source whose turn it is
  std::map<std::size_t, Kept> kept_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::cli
