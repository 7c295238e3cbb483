#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

#include "tests/sim/simulation.h"
#include "tests/sim/world.h"

namespace ringmaster::app::sim {
namespace {

// What the agents log, between what happens.
class TraceSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit TraceSink(std::string* trace) : trace_(trace) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    trace_->append("                 log: ").append(message.payload.data(), message.payload.size());
    trace_->push_back('\n');
  }
  void flush_() override {}

  std::string* const trace_;
};

}  // namespace

Outcome RunSchedule(const Options& options) {
  spdlog::set_level(spdlog::level::off);
  return World(options).Run();
}

std::string Explain(const Options& options, const std::string& violation) {
  std::string trace;
  Options again = options;
  again.trace = &trace;
  const auto before = spdlog::default_logger();
  auto logger = std::make_shared<spdlog::logger>("trace", std::make_shared<TraceSink>(&trace));
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::info);
  World(again).Run();
  spdlog::set_default_logger(before);
  return violation + "\n" + trace;
}

}  // namespace ringmaster::app::sim
