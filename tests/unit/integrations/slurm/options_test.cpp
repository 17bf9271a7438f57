// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/options.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::slurm {
namespace {

using ::testing::HasSubstr;

std::variant<Options, ExitStatus> parse(std::vector<std::string> words) {
  words.insert(words.begin(), "berth-slurm");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return parse_options(static_cast<int>(words.size()), argv.data());
}

Options good(const std::vector<std::string>& words) {
  const auto parsed = parse(words);
  EXPECT_TRUE(std::holds_alternative<Options>(parsed));
  return std::holds_alternative<Options>(parsed) ? std::get<Options>(parsed) : Options();
}

// The message of a refused command line.
std::string refusal(const std::vector<std::string>& words) {
  testing::internal::CaptureStderr();
  const auto parsed = parse(words);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(std::holds_alternative<ExitStatus>(parsed) &&
              std::get<ExitStatus>(parsed) == ExitStatus::wrong_use);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  return said;
}

TEST(SlurmOptions, HaveDefaultsThatFitDebian) {
  const Options options = good({});
  EXPECT_EQ(options.node, "");
  EXPECT_EQ(options.state_file, "/run/berth/state.json");
  EXPECT_EQ(options.scontrol, "/usr/bin/scontrol");
  EXPECT_EQ(options.max_age_s, 120);
  EXPECT_FALSE(options.dry_run);
}

TEST(SlurmOptions, AreTaken) {
  const Options options =
      good({"--node", "n7", "--state=/x/state.json", "--scontrol", "/opt/slurm/bin/scontrol", "--max-age",
            "60.5", "--base-weight", "1000", "--gres", "be_cpu2", "--no-weight", "--no-gres", "--no-drain",
            "--no-extra", "--dry-run"});
  EXPECT_EQ(options.node, "n7");
  EXPECT_EQ(options.state_file, "/x/state.json");
  EXPECT_EQ(options.scontrol, "/opt/slurm/bin/scontrol");
  EXPECT_EQ(options.max_age_s, 60.5);
  EXPECT_EQ(options.settings.base_weight, 1000U);
  EXPECT_EQ(options.settings.gres_name, "be_cpu2");
  EXPECT_FALSE(options.settings.weight || options.settings.gres || options.settings.drain ||
               options.settings.extra);
  EXPECT_TRUE(options.dry_run);
}

TEST(SlurmOptions, AreChecked) {
  EXPECT_THAT(refusal({"--node", "n[1-3]"}), HasSubstr("--node n[1-3]"));
  EXPECT_THAT(refusal({"--node", "ALL"}), HasSubstr("means all nodes"));
  EXPECT_THAT(refusal({"--state", "state.json"}), HasSubstr("no absolute path"));
  EXPECT_THAT(refusal({"--state", "/" + std::string(4095, 'x')}), HasSubstr("no absolute path"));
  EXPECT_THAT(refusal({"--scontrol", ""}), HasSubstr("no absolute path"));
  for (const char* bad : {"4.9", "86401", "nan", "inf", "-1", "1m", ""})
    EXPECT_THAT(refusal({"--max-age", bad}), HasSubstr("from 5 to 86400")) << bad;
  for (const char* bad : {"-1", "4000000001", "1.5", "x"})
    EXPECT_THAT(refusal({"--base-weight", bad}), HasSubstr("from 0 to 4000000000")) << bad;
  for (const char* bad : {"", "1x", "be-cpu", "becpu:2", "BECPU", "a,b"})
    EXPECT_THAT(refusal({"--gres", bad}), HasSubstr("no name of")) << bad;
  EXPECT_THAT(refusal({"--node"}), HasSubstr("--node needs a value"));
  EXPECT_THAT(refusal({"--bogus"}), HasSubstr("no option --bogus"));
  EXPECT_THAT(refusal({"-x"}), HasSubstr("no option -x"));
  EXPECT_THAT(refusal({"n1"}), HasSubstr("no argument (n1)"));
  EXPECT_THAT(refusal({"--bo\x1b[31m\ngus"}), HasSubstr("\\x1b[31m\\ngus"));
}

}  // namespace
}  // namespace berth::slurm
