#include "operator/cli/run_log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

namespace ringmaster::cli {

void LogToFile(const std::filesystem::path& run_dir, const std::string& name) {
  std::error_code error;
  std::filesystem::create_directories(run_dir / "logs", error);
  try {
    auto logger = spdlog::basic_logger_mt(name, (run_dir / "logs" / (name + ".log")).string());
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(logger);
  } catch (const spdlog::spdlog_ex&) {
    spdlog::set_level(spdlog::level::off);  // unexpected: the directory was written to a moment ago
  }
}

}  // namespace ringmaster::cli
