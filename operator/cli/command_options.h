// The commands and options of the command line, as CLI11 reads them: names, help, examples. What
// belongs together is checked in command_line.cc.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "operator/cli/commands.h"

namespace ringmaster::cli {

// Filled by CLI11; one struct, so that references stay valid.
struct Parsed {
  RunOptions run;
  GetOptions get;
  DescribeOptions describe;
  WhyOptions why;
  TopOptions top;
  TimelineOptions timeline;
  UiOptions ui;
  BenchOptions bench;
  ConvertOptions convert;
  LogsOptions logs;
  ScaleOptions scale;
  DrainOptions drain;
  KillOptions kill;
  DeleteOptions del;
  ApplyOptions apply;
  NodeCommandOptions node;
  std::vector<std::string> run_words;
  std::string format = "table";
  int logs_tail = -1;
  int logs_rank = -1;
  int kill_slot = -1;
  double timeout = 0;
  int abandon_after = 3600;  // of node and of run
  std::string hosts;
  double top_interval = 2;
  double ui_interval = 1;
  std::string shell;
};

// `program`: how people call it. The commands are found again by their names.
void AddCommands(CLI::App* root, const std::string& program, Parsed* parsed);

}  // namespace ringmaster::cli
