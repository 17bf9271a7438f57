// SPDX-License-Identifier: Apache-2.0
// The shell completions offer what `berthctl --help` lists, and nothing else.
#include "program.h"
#include "tests/paths.h"

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
  return find_all(help.substr(help.find("Subcommands:")), R"(^ {2}([a-z][a-z-]*))");
}

// Options of the help's list, -h aside, which --help says better.
Names options(const std::string& help) {
  Names found = find_all(help, R"(^ +(?:-\w,)?(--[a-z][a-z-]*))");
  found.merge(find_all(help, R"(^ +(-[a-z]) )"));
  return found;
}

Names words(const std::string& text) { return find_all(text, R"((\S+))"); }

Names completed(const std::string& line, const std::string& word) {
  const Ran ran =
      run_shell("source " BERTH_COMPLETIONS "/berthctl.bash\nCOMP_WORDS=(berthctl " + line + " '" + word +
                "')\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_berthctl\necho \"${COMPREPLY[@]}\"");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  return words(ran.out);
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
    if (command == "check-config") continue;  // files only
    Names expected = options(run_shell("berthctl " + command + " --help").out);
    expected.insert("--json");
    EXPECT_EQ(completed(command, "-"), expected) << command;
  }
}

TEST(BashCompletion, OffersModesAndSettings) {
  EXPECT_EQ(completed("mode", ""), (Names{"observe", "enforce"}));
  EXPECT_EQ(completed("mode", "e"), (Names{"enforce"}));
  EXPECT_EQ(completed("set web", "c"), (Names{"class="}));
  EXPECT_EQ(completed("plan --policy", ""),
            (Names{"interference", "straggler", "spark", "oversell", "placement"}));
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

}  // namespace berth::test
