// SPDX-License-Identifier: Apache-2.0
// A driver that says anything, in two rounds. Each line of the input is one of its answers, and the last of a
// round its event log. berth-sparkd's facts of it must be facts that berthd takes, within the limit of
// memory.
#include "spark/sparkd/interviewer.h"
#include "spark/wire.h"
#include "tests/fuzz/property.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace berth;

constexpr std::size_t kAnswers = 8;
constexpr std::size_t kLog = 7;
constexpr std::size_t kMostBytes = std::size_t{4} << 20;

// The number of the line for a path.
std::size_t answer_for(const std::string& url) {
  static const std::array<std::string, 6> kEnds{"/environment", "/stages?status=active", "/stages", "/jobs",
                                                "/storage/rdd", "/api/v1/applications"};
  for (std::size_t i = 0; i < kEnds.size(); ++i)
    if (url.ends_with(kEnds[i])) return i;
  return 6;  // tasks
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  lines.resize(2 * kAnswers);
  return lines;
}

model::Result<spark::LogFile> file_with(std::string text) {
  os::FileDescriptor file(memfd_create("log", MFD_CLOEXEC));
  std::replace(text.begin(), text.end(), '\t', '\n');
  if (!file || write(file.get(), text.data(), text.size()) < 0)
    return model::fail(model::ErrorKind::io, "memfd");
  return spark::LogFile{.file = std::move(file), .parts = {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lines = lines_of(fuzz::text_of(data, size));
  std::size_t round = 0;
  spark::Interviewer interviewer(
      [&](const std::string& url) -> model::Result<std::string> {
        return lines[round * kAnswers + answer_for(url)];
      },
      [&](const spark::ProcessId&, const std::filesystem::path&) {
        return file_with(lines[round * kAnswers + kLog]);
      },
      [] { return 0.0; }, kMostBytes);
  spark::Question question{
      .now = 1'790'000'000,
      .wall_ahead_s = 0,
      .drivers = {{.process = {10, 7}, .user = geteuid(), .endpoints = {"127.0.0.1:1"}}}};
  for (; round < 2; ++round) {
    question.now += 60;
    const auto answer = interviewer.ask(question);
    fuzz::require(answer.drivers.size() == 1, "there are facts of each driver");
    const spark::DriverFacts& facts = answer.drivers.front();
    std::size_t most_bytes = kMostBytes;
    const auto taken = spark::wire::decode_facts(spark::wire::encode(facts), most_bytes);
    if (!taken) std::fprintf(stderr, "%s\n", taken.error().message().c_str());
    fuzz::require(taken.has_value(), "berthd takes what berth-sparkd makes of any driver");
    fuzz::require(*taken == facts, "berthd takes it as it is");
  }
  return 0;
}
