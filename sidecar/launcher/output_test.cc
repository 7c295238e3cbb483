#include "sidecar/launcher/output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sidecar/launcher/log.h"
#include "tests/support/temp_dir.h"

namespace ringmaster::launcher {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end = ends[0], write_end = ends[1];
  }
  ~Pipe() {
    close(read_end);
    close(write_end);
  }
  std::string Read() const {
    std::string text(1 << 20, '\0');
    const ssize_t got = read(read_end, text.data(), text.size());
    return text.substr(0, got > 0 ? static_cast<size_t>(got) : 0);
  }
  int read_end = -1, write_end = -1;
};

void Print(int fd, const std::string& text) {
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

class OutputTest : public testing::Test {
 protected:
  Pipe out_, err_;
  Output output_{{.labelled = true, .output = out_.write_end, .error = err_.write_end}};
};

TEST_F(OutputTest, LinesOfSeveralWorkersAreWholeAndSayWhose) {
  const auto first = output_.Open(1, "0"), second = output_.Open(2, "1");
  Print(first.output, "pass");
  Print(second.output, "pass 2\nra");
  Print(first.output, " 1\n");
  output_.Pass(Clock::now());
  EXPECT_EQ(out_.Read(), "[0] pass 1\n[1] pass 2\n");
  Print(second.error, "error\n");
  Print(second.output, "nk\n");
  output_.Pass(Clock::now());
  EXPECT_EQ(out_.Read(), "[1] rank\n");
  EXPECT_EQ(err_.Read(), "[1] error\n");
}

TEST_F(OutputTest, APromotedStandbySpeaksAsTheWorkerWhosePlaceItTakes) {
  const auto files = output_.Open(1, "standby");
  Print(files.output, "imports done\n");
  output_.Pass(Clock::now());
  output_.Label(1, "3");
  Print(files.output, "step 1\n");
  output_.Pass(Clock::now());
  EXPECT_EQ(out_.Read(), "[standby] imports done\n[3] step 1\n");
}

TEST_F(OutputTest, LastWordsWithoutAnEndAreALine) {
  {
    const auto files = output_.Open(1, "0");
    Print(files.error, "Traceback");
  }
  output_.Pass(Clock::now());
  EXPECT_EQ(err_.Read(), "[0] Traceback\n");
  std::vector<pollfd> fds;
  output_.AddTo(&fds);
  EXPECT_TRUE(fds.empty()) << "a process that has closed its files is waited for no more";
}

TEST_F(OutputTest, AReaderThatDoesNotKeepUpHoldsUpTheWorkerAndLosesNothing) {
  const auto files = output_.Open(1, "0");
  fcntl(files.output, F_SETFL, O_NONBLOCK);
  const std::string line = std::string(999, 'x') + "\n";
  size_t printed = 0;
  for (int idle = 0; idle < 3;) {
    if (write(files.output, line.data(), line.size()) > 0) {
      printed += line.size() + 4;
    } else {
      output_.Pass(Clock::now());
      ++idle;
    }
  }
  std::vector<pollfd> fds;
  output_.AddTo(&fds);
  ASSERT_EQ(fds.size(), 2u);
  EXPECT_EQ(fds[0].events, POLLOUT)
      << "it waits for the reader, and for the other file of the worker";
  size_t seen = 0;
  for (int i = 0; i < 1000 && seen < printed; ++i) {
    seen += out_.Read().size();
    output_.Pass(Clock::now());
  }
  EXPECT_EQ(seen, printed);
}

TEST_F(OutputTest, TheRestIsHandedOnAtTheEnd) {
  const auto files = output_.Open(1, "0");  // a process that lives on has them, too
  Print(files.output, "whole\nhalf");
  output_.Finish(Clock::now() + std::chrono::milliseconds(10));
  EXPECT_EQ(out_.Read(), "[0] whole\n[0] half\n");
}

TEST(OutputOfOneTest, AWorkerThatIsAloneWritesToTheLaunchersOwnFiles) {
  Output output({});
  const auto files = output.Open(1, "0");
  EXPECT_EQ(files.output, -1);
  EXPECT_EQ(files.error, -1);
}

std::string Text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(KeptOutputTest, EachWorkersFilesHaveWhatItWroteToTheByte) {
  const support::TempDir dir;
  Pipe out, err;
  Output output(
      {.labelled = true, .keep_in = dir.path(), .output = out.write_end, .error = err.write_end});
  const auto first = output.Open(1, "4"), second = output.Open(2, "5");
  Print(first.output, "10%\r20%\r");
  Print(first.output, "done\nhalf");
  Print(second.error, "Traceback\n");
  output.Pass(Clock::now());
  EXPECT_EQ(Text(dir.path() / "rank.4/stdout"), "10%\r20%\rdone\nhalf");
  EXPECT_EQ(Text(dir.path() / "rank.4/stderr"), "");
  EXPECT_EQ(Text(dir.path() / "rank.5/stderr"), "Traceback\n");
  EXPECT_EQ(err.Read(), "[5] Traceback\n") << "the log has it as well";
}

// Both may be one log.
TEST(KeptOutputTest, WhatIsSaidBesideALineThatHasOnlyBegunDoesNotStandInIt) {
  const support::TempDir dir;
  Pipe log;
  Output output{{.keep_in = dir.path(), .output = log.write_end, .error = log.write_end}};
  const auto files = output.Open(1, "0");
  Print(files.output, "one line\nhalf a ");
  Print(files.error, "warning\n");
  output.Pass(Clock::now());
  EXPECT_EQ(log.Read(), "one line\nwarning\n");
  Print(files.output, "line\rand the end");
  output.Pass(Clock::now());
  EXPECT_EQ(log.Read(), "half a line\r");
  output.Finish(Clock::now());
  EXPECT_EQ(log.Read(), "and the end");
}

TEST(KeptOutputTest, AWorkerThatIsStartedAgainAppendsToItsFiles) {
  const support::TempDir dir;
  for (const char* text : {"one\n", "two\n"}) {
    Pipe out, err;
    Output output({.keep_in = dir.path(), .output = out.write_end, .error = err.write_end});
    const auto files = output.Open(1, "0");
    Print(files.output, text);
    output.Pass(Clock::now());
    EXPECT_EQ(out.Read(), text) << "without a number in front: the pod has one worker";
  }
  EXPECT_EQ(Text(dir.path() / "rank.0/stdout"), "one\ntwo\n");
}

TEST(KeptOutputTest, APromotedStandbyWritesToTheFilesOfItsRank) {
  const support::TempDir dir;
  Pipe out, err;
  Output output(
      {.labelled = true, .keep_in = dir.path(), .output = out.write_end, .error = err.write_end});
  const auto files = output.Open(1, "standby");
  Print(files.output, "imports done\n");
  output.Pass(Clock::now());
  output.Label(1, "3");
  Print(files.output, "step 1\n");
  output.Pass(Clock::now());
  EXPECT_EQ(Text(dir.path() / "standby/stdout"), "imports done\n");
  EXPECT_EQ(Text(dir.path() / "rank.3/stdout"), "step 1\n");
}

TEST(KeptOutputTest, AWorkerWhoseFilesCannotBeMadeGoesOnAndIsSeenInTheLog) {
  Pipe out, err;
  Output output({.keep_in = "/dev/null/there", .output = out.write_end, .error = err.write_end});
  const auto files = output.Open(1, "0");
  Print(files.output, "step 1\n");
  output.Pass(Clock::now());
  EXPECT_EQ(out.Read(), "step 1\n");
}

// ---- The launcher's own lines

TEST(OutputOnAFullDisk, WhatIsLostIsCountedAndSaidOnceWhenThereIsRoomAgain) {
  const support::TempDir dir;
  const int log = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const int room = open((dir.path() / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  Output output({.labelled = true, .output = log, .error = log});
  const auto files = output.Open(1, "0");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    Print(files.output, "lost\n");
    output.Pass(Clock::now());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(dup2(room, log), log);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    Print(files.output, "kept\n");
    output.Pass(Clock::now());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ringmaster-launcher: error: output of the workers could not be written and is lost "
            "bytes=27 reason=\"No space left on device\"\n");
  close(log);
  close(room);
}

TEST(LogBacklogTest, LinesThatAreNotReadWaitInOrderAndThoseAboveTheBoundAreCounted) {
  Pipe pipe;
  LogBacklog log(pipe.write_end);
  log.Add("first");
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(pipe.Read(), "first\n");

  while (write(pipe.write_end, "full", 4) > 0) {
  }
  log.Add("second");
  log.Add(std::string(65'000, 'x'));
  log.Add(std::string(600, 'y'));
  log.Add(std::string(600, 'z'));
  EXPECT_FALSE(log.empty());
  pipe.Read();
  log.Add("last");
  std::string text;
  for (int i = 0; i < 100 && !(log.empty() && text.ends_with("last\n")); ++i) {
    log.Pass();
    text += pipe.Read();
  }
  EXPECT_EQ(text, "second\n" + std::string(65'000, 'x') +
                      "\nringmaster-launcher: lines of this log are lost count=2\nlast\n");
}

TEST(LogBacklogTest, TheEndWaitsForTheReaderUntilItsDeadline) {
  Pipe pipe;
  LogBacklog log(pipe.write_end);
  while (write(pipe.write_end, "full", 4) > 0) {
  }
  log.Add("why it failed");
  log.Finish(Clock::now() + std::chrono::milliseconds(20));
  EXPECT_FALSE(log.empty());
  pipe.Read();
  log.Finish(Clock::now());
  EXPECT_EQ(pipe.Read(), "why it failed\n");
}

}  // namespace
}  // namespace ringmaster::launcher
