// Bounds of numbers on a command line, with errors that say in words what is allowed. CLI11's own
// shows fractional bounds with six digits, and bounds that are only there against overflow as if
// they mattered.
//
// Pure.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace ringmaster::option_bounds {

// Both bounds are allowed.
CLI::Validator WholeNumber(std::int64_t least, std::int64_t most);
CLI::Validator Number(double least, double most);

}  // namespace ringmaster::option_bounds
