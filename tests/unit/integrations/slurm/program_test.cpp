// SPDX-License-Identifier: Apache-2.0
// The real berth-slurm with a scontrol that shows a node from a file and keeps its arguments. tests/slurm has
// the real Slurm.
#include "integrations/slurm/command.h"
#include "tests/paths.h"
#include "tests/temporary_directory.h"
#include "tests/unit/integrations/slurm/shown_node.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace berth::slurm {
namespace {

using namespace std::chrono_literals;
using test::shown;
using ::testing::HasSubstr;

class SlurmProgram : public testing::Test {
 protected:
  SlurmProgram() {
    // Not by a shell's "[": only its own words reach the log, one a line.
    scontrol_ = directory_.write("scontrol", fmt::format(R"sh(#!/bin/sh
cd {0}
printf '%s\n' "$@" >> calls
echo "SLURM_CONF=$SLURM_CONF" > conf
case $1 in
  show) cat shown; exit "$(cat show_status)" ;;
  update) cat refusal; if [ -f later ]; then cat later > shown; fi; exit "$(cat update_status)" ;;
esac
)sh",
                                                         directory_.path().string()));
    std::filesystem::permissions(scontrol_, std::filesystem::perms::owner_all);
    directory_.write("shown", shown({}));
    directory_.write("show_status", "0");
    directory_.write("update_status", "0");
    directory_.write("refusal", "");
    berthd_says("schedule");
  }

  void berthd_says(const std::string& cpu_state, double age_s = 0) const {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() - age_s;
    directory_.write(
        "state.json",
        fmt::format(R"({{"schema":"berth.state/1","host":"a","time":{},"mode":"observe","interval_s":1,
"evict_count":0,"score":0.33,"cpu":{{"state":"{}","advertised":18,"requested_latency_sensitive":4,"utilisation":0.87}},
"memory":{{"state":"schedule","advertised":5e9,"requested_latency_sensitive":2e9,"utilisation":0.4}}}})",
                    now, cpu_state));
  }

  Finished run(std::vector<std::string> options = {},
               std::vector<std::string> environment = {"SLURMD_NODENAME=n1"}) const {
    std::vector<std::string> words{BERTH_SLURM, "--state", (directory_.path() / "state.json").string(),
                                   "--scontrol", scontrol_.string()};
    words.insert(words.end(), options.begin(), options.end());
    const auto ended = run_program(words, environment, 60'000ms);
    EXPECT_TRUE(ended) << ended.error().message();
    return ended.value_or(Finished{.status = -1, .output = {}, .errors = {}});
  }

  std::string read(const std::string& file) const {
    std::ifstream stream(directory_.path() / file);
    return {std::istreambuf_iterator(stream), {}};
  }

  berth::test::TemporaryDirectory directory_;
  std::filesystem::path scontrol_;
};

const std::string kExtra =
    R"({"berth_be_memory_gib":2,"berth_becpu":14,"berth_score":33,"berth_state":"schedule"})";

TEST_F(SlurmProgram, ShowsOnceAndUpdatesOnce) {
  const Finished ended = run();
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(read("calls"),
            "show\nnode\nn1\nupdate\nNodeName=n1\nWeight=34\nGres=becpu:14\nExtra=" + kExtra + "\n");
  EXPECT_EQ(ended.output,
            "berth-slurm: n1: weight 1 -> 34, gres becpu:8 -> becpu:14, extra " + kExtra + "\n");
  EXPECT_EQ(ended.errors, "");
}

TEST_F(SlurmProgram, UpdatesNothingAndSaysNothingWhereNothingIsToChange) {
  directory_.write(
      "shown", shown({.gres = "becpu:14",
                      .weight = "36",
                      .tail = "   Extra=" + std::string(kExtra).replace(kExtra.find("33"), 2, "35") + "\n"}));
  const Finished ended = run();
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(read("calls"), "show\nnode\nn1\n");
  EXPECT_EQ(ended.output + ended.errors, "");
}

TEST_F(SlurmProgram, ShowsWhatItWouldDo) {
  berthd_says("no-schedule");
  const Finished ended = run({"--dry-run", "--no-extra"});
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_EQ(ended.output, fmt::format("'{}' 'update' 'NodeName=n1' 'Weight=34' 'Gres=becpu:14' 'State=DRAIN' "
                                      "'Reason=berth: cpu no-schedule, 87 % in use'\n",
                                      scontrol_.string()));
  EXPECT_EQ(read("calls"), "show\nnode\nn1\n");
}

TEST_F(SlurmProgram, SaysWithTheChangeThatBerthdIsSilent) {
  berthd_says("no-schedule", 1000);
  Finished ended = run({"--no-extra"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.errors, HasSubstr("n1: berthd hangs: its state is 100"));
  EXPECT_THAT(read("calls"), HasSubstr("Weight=51\nGres=becpu:0\n"));
  EXPECT_THAT(read("calls"), Not(HasSubstr("State=")));
  EXPECT_EQ(run({"--no-extra", "--max-age", "2000", "--dry-run"}).errors, "");
  // It has said so, and nothing changes.
  directory_.write("shown", shown({.gres = "becpu:0", .weight = "51"}));
  ended = run({"--no-extra"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output + ended.errors, "");
}

TEST_F(SlurmProgram, BlamesTheClockForAStateOfTheFuture) {
  berthd_says("schedule", -1000);
  const Finished ended = run({"--dry-run"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.errors, HasSubstr("n1: the clock of this host disagrees with berthd: its state is "));
  EXPECT_THAT(ended.errors, HasSubstr(" s in the future"));
  EXPECT_THAT(ended.errors, Not(HasSubstr("hangs")));
  EXPECT_THAT(ended.output, HasSubstr("'Gres=becpu:0'"));
}

TEST_F(SlurmProgram, BelievesNoStateThatItCannotRead) {
  const auto silence = [&](const std::string& text) {
    directory_.write("state.json", text);
    const Finished ended = run({"--dry-run"});
    EXPECT_EQ(ended.status, 0) << ended.errors;
    EXPECT_THAT(ended.output, HasSubstr("'Gres=becpu:0'"));
    return ended.errors;
  };
  EXPECT_THAT(silence("{}"), HasSubstr("state.json: $.schema"));
  EXPECT_THAT(silence(std::string(70'000, ' ')), HasSubstr("longer than 65536 bytes"));
  EXPECT_THAT(silence(std::string(60'000, '[')), HasSubstr("state.json"));
  std::filesystem::remove(directory_.path() / "state.json");
  EXPECT_THAT(run({"--dry-run"}).errors, HasSubstr("berthd does not run: there is no"));
  ASSERT_EQ(mkfifo((directory_.path() / "state.json").c_str(), 0600), 0);
  EXPECT_THAT(run({"--dry-run"}).errors, HasSubstr("cannot read berthd's state"));
}

TEST_F(SlurmProgram, RefusesHostileNamesBeforeItRunsAnything) {
  for (const char* name : {"n[1-3]", "ALL", "", "n1 state=down", "../n1", "n1;id"}) {
    const Finished ended = run({}, {std::string("SLURMD_NODENAME=") + name});
    EXPECT_EQ(ended.status, 2) << name;
    EXPECT_THAT(ended.errors, HasSubstr("SLURMD_NODENAME names no node")) << name;
  }
  EXPECT_THAT(run({}, {}).errors, HasSubstr("--node NAME"));
  EXPECT_EQ(read("calls"), "");
  EXPECT_EQ(run({"--node", "n1"}, {}).status, 0);
}

TEST_F(SlurmProgram, SaysWhatFailed) {
  directory_.write("show_status", "1");
  directory_.write("shown", "slurm_load_node error: Unable to contact slurm controller\nmore\n");
  Finished ended = run();
  EXPECT_EQ(ended.status, 1);
  EXPECT_EQ(ended.errors,
            fmt::format("berth-slurm: n1: {} show: slurm_load_node error: Unable to contact slurm controller "
                        "(exit status 1)\n",
                        scontrol_.string()));
  directory_.write("show_status", "0");
  EXPECT_THAT(run().errors, HasSubstr("the answer of scontrol show node: the answer is about another node"));

  directory_.write("shown", shown({}));
  directory_.write("update_status", "1");
  directory_.write("refusal", "slurm_update error: Invalid\x1b[31m node\n");
  ended = run({"--no-extra"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("weight 1 -> 34, gres becpu:8 -> becpu:14: "));
  EXPECT_THAT(ended.errors, HasSubstr("slurm_update error: Invalid\\x1b[31m node (exit status 1)"));

  ended = run({"--scontrol", "/nonexistent/scontrol"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors, HasSubstr("/nonexistent/scontrol: No such file"));
}

TEST_F(SlurmProgram, SaysThatSlurmConfHasTooLittle) {
  directory_.write(
      "shown",
      shown({.gres = "becpu:14",
             .state = "IDLE+DRAIN+INVALID_REG",
             .tail = "   Reason=gres/becpu count reported lower than configured (8 < 14) [root@1]\n"}));
  const Finished ended = run();
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.errors, HasSubstr("slurm.conf has becpu:8 for this node"));
  EXPECT_THAT(read("calls"), HasSubstr("Gres=becpu:8\n"));
}

TEST_F(SlurmProgram, SaysThatSlurmIgnoredAResourceThatItDoesNotKnow) {
  directory_.write("shown", shown({.gres = "gpu:2"}));
  Finished ended = run({"--no-extra"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.errors,
              HasSubstr("-> gpu:2,becpu:14: Slurm ignored the amount of becpu: add becpu to GresTypes"));
  // Its first amount, and a further one.
  directory_.write("later", shown({.gres = "gpu:2,becpu:14"}));
  ended = run({"--no-extra"});
  EXPECT_EQ(ended.status, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("gres gpu:2 -> gpu:2,becpu:14"));
  directory_.write("calls", "");
  directory_.write("shown", shown({.gres = "gpu:2,becpu:3"}));
  EXPECT_EQ(run({"--no-extra"}).status, 0);
  EXPECT_EQ(read("calls"), "show\nnode\nn1\nupdate\nNodeName=n1\nWeight=34\nGres=gpu:2,becpu:14\n");
}

TEST_F(SlurmProgram, PublishesWithoutAReader) {
  const std::string command =
      fmt::format("exec {} --no-extra --node n1 --state {} --scontrol {} >/dev/full 2>&1", BERTH_SLURM,
                  (directory_.path() / "state.json").string(), scontrol_.string());
  const auto ended = run_program({"/bin/sh", "-c", command}, {}, 60'000ms);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_EQ(ended->status, 1);
  EXPECT_THAT(read("calls"), HasSubstr("Gres=becpu:14"));
}

TEST_F(SlurmProgram, HandsOnTheNameOfSlurmConfAlone) {
  run({}, {"SLURMD_NODENAME=n1", "SLURM_CONF=/opt/slurm/etc/slurm.conf", "LD_PRELOAD_X=1"});
  EXPECT_EQ(read("conf"), "SLURM_CONF=/opt/slurm/etc/slurm.conf\n");
  run({}, {"SLURMD_NODENAME=n1", "SLURM_CONF=relative"});
  EXPECT_EQ(read("conf"), "SLURM_CONF=\n");
}

}  // namespace
}  // namespace berth::slurm
