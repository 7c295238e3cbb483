// A directory of a test's own, which goes with all that is in it when the test ends.
#ifndef RINGMASTER_TESTS_SUPPORT_TEMP_DIR_H_
#define RINGMASTER_TESTS_SUPPORT_TEMP_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>

namespace ringmaster::support {

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/rm-test-XXXXXX";
    if (mkdtemp(name) == nullptr) throw std::runtime_error("no directory in /tmp");
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ringmaster::support

#endif  // RINGMASTER_TESTS_SUPPORT_TEMP_DIR_H_
