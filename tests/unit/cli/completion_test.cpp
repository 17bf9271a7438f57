// SPDX-License-Identifier: Apache-2.0
// The shell completions offer what `berthctl --help` lists, and nothing else.
#include "program.h"
#include "tests/paths.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace berth::test {

namespace {

using Names = std::set<std::string>;

Names find_all(const std::string& text, const std::string& pattern) {
  Names names;
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) names.insert((*it)[1]);
  return names;
}

Names commands() {
  const std::string help = run_shell("berthctl --help").out;
  return find_all(help.substr(0, help.find("Options:")), R"( {2,}([a-z][a-z-]*) +[A-Z])");
}

// Options of the help's list, -h aside, which --help says better.
Names options(const std::string& help) {
  Names found = find_all(help, R"( {2,}(?:-\w,)?(--[a-z][a-z-]*))");
  found.merge(find_all(help, R"(^ +(-[a-z]) )"));
  return found;
}

Names words(const std::string& text) { return find_all(text, R"((\S+))"); }

// As readline splits a line, the cursor at its end: "@", ":" and "=" are words of their own.
std::string split_line(const std::string& line) {
  std::string words;
  bool between = true;
  for (const char c : line) {
    const bool breaks = c == '@' || c == ':' || c == '=';
    if (c == ' ') {
      if (!between) words += "' ";
      between = true;
      continue;
    }
    if (breaks && !between) words += "' ";
    if (between || breaks) words += "'";
    words += c;
    between = breaks;
    if (breaks) words += "' ";
  }
  return words + (between ? "''" : "'");
}

// The names of workloads in this file, one a line, are those of berthctl.
constexpr const char* kNames = "\nberthctl() { cat \"$NAMES\"; }\n";

Names completed(const std::string& line, const std::string& word, const std::string& names = "") {
  const std::string all = "berthctl " + line + (line.empty() ? "" : " ") + word;
  const Ran ran =
      run_shell("source " BERTH_COMPLETIONS "/berthctl.bash" + (names.empty() ? "" : kNames + names) +
                "\nCOMP_LINE='" + all + "'\nCOMP_POINT=${#COMP_LINE}\nCOMP_WORDS=(" + split_line(all) +
                ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_berthctl\nprintf '%s\\n' \"${COMPREPLY[@]}\"");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  return find_all(ran.out, R"((.+))");
}

bool has(const std::string& program) { return run_shell("command -v " + program).exit == 0; }

// A directory with a berthctl that only names workloads, for shells that are programs of their own.
std::string with_names(const std::string& command) {
  return "mkdir bin && trap 'rm -rf bin' EXIT && printf '#!/bin/sh\\nprintf \"%%s\\\\n\" "
         "\"system.slice/web@1.service\" "
         "\"machine.slice/a:b.scope\"\\n' > bin/berthctl && chmod +x bin/berthctl && export "
         "PATH=$PWD/bin:$PATH && " +
         command;
}

}  // namespace

TEST(BashCompletion, OffersEveryCommandAndNoOther) {
  EXPECT_FALSE(commands().empty());
  EXPECT_EQ(completed("", ""), commands());
  EXPECT_EQ(completed("--json", ""), commands());
}

TEST(BashCompletion, OffersTheGlobalOptions) {
  EXPECT_EQ(completed("", "-"), options(run_shell("berthctl --help").out));
}

TEST(BashCompletion, OffersEveryOptionOfEveryCommandAndNoOther) {
  for (const std::string& command : commands()) {
    Names expected = options(run_shell("berthctl " + command + " --help").out);
    expected.insert("--json");
    EXPECT_EQ(completed(command, "-"), expected) << command;
  }
}

TEST(BashCompletion, OffersModesAndSettings) {
  EXPECT_EQ(completed("mode", ""), (Names{"observe", "enforce"}));
  EXPECT_EQ(completed("mode", "e"), (Names{"enforce"}));
  EXPECT_EQ(completed("set web", "c"), (Names{"class="}));
  EXPECT_EQ(completed("profile", ""), (Names{"list", "show", "export", "import", "forget", "fit"}));
  EXPECT_EQ(completed("plan --policy", ""),
            (Names{"interference", "straggler", "eviction", "oversell", "placement", "quota"}));
}

TEST(BashCompletion, OffersWhatASettingMayBe) {
  EXPECT_EQ(completed("set web", "class="), (Names{"latency-sensitive", "best-effort"}));
  EXPECT_EQ(completed("set web", "evictable=f"), (Names{"false"}));
  EXPECT_EQ(completed("set web", "force=t"), (Names{"true"}));
  EXPECT_EQ(completed("set web", "isolation=c"), (Names{"cores"}));
}

class BashWorkloads : public testing::Test {
 protected:
  void SetUp() override {
    file_ = testing::TempDir() + "berth-names";
    std::ofstream(file_)
        << "system.slice/web@1.service\nsystem.slice/web@2.service\nmachine.slice/a:b.scope\n"
           "user.slice/two words\nuser.slice/$(touch "
        << file_ << ".run)\n";
    names_ = "NAMES=" + file_;
  }
  void TearDown() override {
    std::filesystem::remove(file_);
    std::filesystem::remove(file_ + ".run");
  }
  std::string file_;
  std::string names_;
};

TEST_F(BashWorkloads, AreOfferedWhereAWorkloadStands) {
  for (const char* line : {"explain", "explain --json", "set", "evict --yes"}) {
    EXPECT_EQ(completed(line, "mach", names_), (Names{"machine.slice/a:b.scope"})) << line;
    EXPECT_EQ(completed(line, "system.slice/", names_),
              (Names{"system.slice/web@1.service", "system.slice/web@2.service"}))
        << line;
  }
  EXPECT_EQ(completed("progress", "s", names_),
            (Names{"self", "system.slice/web@1.service", "system.slice/web@2.service"}));
  EXPECT_EQ(completed("explain web", "m", names_), Names());
}

TEST_F(BashWorkloads, AreCompletedBehindBreaksOfWords) {
  EXPECT_EQ(completed("explain", "system.slice/web@", names_), (Names{"1.service", "2.service"}));
  EXPECT_EQ(completed("explain", "system.slice/web@2", names_), (Names{"2.service"}));
  EXPECT_EQ(completed("explain", "machine.slice/a:b", names_), (Names{"b.scope"}));
  EXPECT_EQ(completed("set system.slice/web@1.service", "c", names_), (Names{"class="}))
      << "the name is one word";
}

TEST_F(BashWorkloads, AreNotRun) {
  EXPECT_EQ(completed("explain", "user.slice/t", names_), (Names{"user.slice/two\\ words"}));
  const Names all = completed("explain", "user.slice/", names_);
  EXPECT_EQ(all.size(), 2U);
  EXPECT_FALSE(std::filesystem::exists(file_ + ".run"));
}

TEST(ZshCompletion, NamesEveryCommandAndOption) {
  std::ifstream file(BERTH_COMPLETIONS "/_berthctl");
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  for (const std::string& command : commands()) {
    EXPECT_NE(text.find("'" + command + ":"), std::string::npos) << command;
    for (const std::string& option : options(run_shell("berthctl " + command + " --help").out)) {
      EXPECT_NE(text.find(option + "["), std::string::npos) << command << " " << option;
    }
  }
  EXPECT_EQ(find_all(text, R"(^ +'([a-z-]+):)"), commands());
}

TEST(ZshCompletion, OffersCommandsOptionsAndWorkloads) {
  if (!has("zsh")) GTEST_SKIP() << "there is no zsh";
  const auto offered = [](const std::string& line) {
    const Ran ran = run_shell("cd $(mktemp -d) && " +
                              with_names(BERTH_ZSH_COMPLETE " " BERTH_COMPLETIONS " '" + line + "'"));
    return words(ran.out);
  };
  EXPECT_EQ(offered("berthctl "), commands());
  // Each takes a second.
  for (const std::string command : {"list", "plan", "set"}) {
    const Names found = offered("berthctl " + command + " -");
    for (const std::string& option : options(run_shell("berthctl " + command + " --help").out)) {
      EXPECT_TRUE(found.contains(option)) << command << " " << option;
    }
  }
  EXPECT_EQ(offered("berthctl set sys"), (Names{"system.slice/web@1.service"}));
  EXPECT_EQ(offered("berthctl evict m"), (Names{"machine.slice/a:b.scope"}));
  EXPECT_TRUE(offered("berthctl progress ").contains("self"));
}

TEST(FishCompletion, OffersCommandsOptionsAndWorkloads) {
  if (!has("fish")) GTEST_SKIP() << "there is no fish";
  const auto offered = [](const std::string& line) {
    const Ran ran = run_shell("cd $(mktemp -d) && export HOME=$PWD && " +
                              with_names("fish --no-config -c 'source " BERTH_COMPLETIONS
                                         "/berthctl.fish; complete -C \"" +
                                         line + "\"' | cut -f 1"));
    EXPECT_EQ(ran.exit, 0) << ran.err;
    return words(ran.out);
  };
  EXPECT_EQ(offered("berthctl "), commands());
  for (const std::string& command : commands()) {
    EXPECT_EQ(offered("berthctl " + command + " -"), [&] {
      Names expected = options(run_shell("berthctl " + command + " --help").out);
      expected.insert({"--json", "--help"});
      return expected;
    }()) << command;
  }
  EXPECT_EQ(offered("berthctl set sys"), (Names{"system.slice/web@1.service"}));
  EXPECT_EQ(offered("berthctl explain web e"), Names());
  EXPECT_TRUE(offered("berthctl progress ").contains("self"));
  EXPECT_EQ(offered("berthctl mode "), (Names{"observe", "enforce"}));
}

}  // namespace berth::test
