// SPDX-License-Identifier: Apache-2.0
// A part of every test program with rapidcheck. Its random cases follow BERTH_SEED, a decimal number of 64
// bits, which is 1 where it is not set. A case that fails prints the line that repeats it.
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace berth::testing {

namespace {

constexpr std::uint64_t kDefaultSeed = 1;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::uint64_t chosen_seed() {
  const std::string text = variable("BERTH_SEED");
  if (text.empty()) return kDefaultSeed;
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && read == end) return seed;
  std::fprintf(stderr, "BERTH_SEED takes a decimal number of 64 bits, not '%s'\n", text.c_str());
  std::exit(2);
}

// A word as a shell reads it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

class Repeat : public ::testing::EmptyTestEventListener {
 public:
  explicit Repeat(std::string command) : command_(std::move(command)) {}

  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    const std::string name = std::string(test.test_suite_name()) + "." + test.name();
    std::printf("repeat with: %s --gtest_filter=%s\n", command_.c_str(), name.c_str());
    std::fflush(stdout);
  }

 private:
  std::string command_;
};

// rapidcheck reads RC_PARAMS at the first property, long after this.
const bool kPrepared = [] {
  const std::string given = variable("RC_PARAMS");
  std::string command;
  // A seed or a case in RC_PARAMS itself comes first.
  if (given.find("seed=") == std::string::npos && given.find("reproduce=") == std::string::npos) {
    const std::string seed = std::to_string(chosen_seed());
    command += "BERTH_SEED=" + seed + " ";
    setenv("RC_PARAMS", (given + (given.empty() ? "" : " ") + "seed=" + seed).c_str(), 1);
  }
  if (!given.empty()) command += "RC_PARAMS=" + quoted(given) + " ";
  command += quoted(program_invocation_name);
  ::testing::UnitTest::GetInstance()->listeners().Append(new Repeat(command));
  return true;
}();

}  // namespace

}  // namespace berth::testing
