#include "operator/cli/convert_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli::conversion {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(ConvertProgramTest, OptionsOfBothMpisAreKnown) {
  Notes notes;
  Program program =
      ProgramOf({"mpiexec", "-ppn", "2", "-genv", "A", "1", "--timeout=3", "./a.out"}, &notes);
  EXPECT_EQ(program.starter, Starter::kMpi);
  EXPECT_THAT(program.command, ElementsAre("./a.out"));
  EXPECT_THAT(program.env, ElementsAre(Pair("A", "1")));
  notes.clear();
  EXPECT_THAT(ProgramOf({"/opt/mpirun", "./a.out"}, &notes).command, ElementsAre("./a.out"));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(ConvertProgramTest, TorchrunIsTakenApart) {
  Notes notes;
  const Program program = ProgramOf(
      {"/opt/conda/bin/torchrun", "--nproc_per_node=4", "--nnodes", "1:3", "--max-restarts", "5",
       "--rdzv_backend", "c10d", "--standalone", "train.py", "--nnodes", "9"},
      &notes);
  EXPECT_EQ(program.starter, Starter::kTorch);
  EXPECT_THAT(program.command, ElementsAre("python3", "-u", "train.py", "--nnodes", "9"));
  EXPECT_THAT(program.settings, ElementsAre(Pair("max-restarts", "5"), Pair("nnodes", "1:3"),
                                            Pair("nproc-per-node", "4")));
  EXPECT_THAT(notes, ElementsAre("options of torchrun without a meaning here: --rdzv_backend c10d, "
                                 "--standalone",
                                 HasSubstr("'python3 -u' was put in front of 'train.py'")));
}

TEST(ConvertProgramTest, TorchrunAsAModuleKeepsItsPython) {
  Notes notes;
  EXPECT_THAT(
      ProgramOf({"/venv/bin/python", "-m", "torch.distributed.run", "-m", "my.train", "-x"}, &notes)
          .command,
      ElementsAre("/venv/bin/python", "-u", "-m", "my.train", "-x"));
  EXPECT_THAT(
      ProgramOf({"python", "-u", "-m", "torch.distributed.launch", "--use_env", "t.py"}, &notes)
          .command,
      ElementsAre("python", "-u", "t.py"));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("--use_env")));
  notes.clear();
  EXPECT_THAT(ProgramOf({"torchrun", "--no-python", "./train", "-v"}, &notes).command,
              ElementsAre("./train", "-v"));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(ConvertProgramTest, OfAnOptionThatIsNotKnownTheValueMayBeTheProgram) {
  Notes notes;
  for (const char* starter : {"torchrun", "mpirun"}) {
    const std::string name = starter;
    EXPECT_THAT(ProgramOf({name, "--news", "3", "train.py"}, &notes).doubt,
                HasSubstr("'--news' is no option of " + name + " that is known here"));
    EXPECT_THAT(ProgramOf({name, "--news", "--", "train.py"}, &notes).doubt, IsEmpty());
    EXPECT_THAT(ProgramOf({name, "--news"}, &notes).doubt, IsEmpty());
    EXPECT_THAT(ProgramOf({name, "train.py", "--news", "3"}, &notes).doubt, IsEmpty());
  }
}

TEST(ConvertProgramTest, WhatNeedsAShellIsLeft) {
  Notes notes;
  EXPECT_THAT(ProgramOf({"bash", "-c", "torchrun  train.py"}, &notes).command,
              ElementsAre("python3", "-u", "train.py"));
  const Words shell = {"bash", "-c", "torchrun --nproc-per-node=$N train.py"};
  const Program program = ProgramOf(shell, &notes);
  EXPECT_EQ(program.starter, Starter::kNone);
  EXPECT_EQ(program.command, shell);
  EXPECT_TRUE(NamesTorchrun(shell));
  EXPECT_FALSE(NamesTorchrun({"python3", "-m", "pytest"}));
  EXPECT_EQ(ProgramOf({"python3", "-m", "pytest"}, &notes).starter, Starter::kNone);
  EXPECT_THAT(ProgramOf({}, &notes).command, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::cli::conversion
