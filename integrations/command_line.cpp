// SPDX-License-Identifier: Apache-2.0
#include "integrations/command_line.h"

#include "model/plain_text.h"

#include <cstddef>
#include <cstdio>
#include <utility>

#include <fmt/core.h>

namespace berth::integrations {

CommandLine::CommandLine(std::string program, int argc, char* const* argv, std::vector<option> options)
    : program_(std::move(program)), argc_(argc), argv_(argv), options_(std::move(options)) {
  options_.push_back({nullptr, 0, nullptr, 0});
}

std::optional<ExitStatus> CommandLine::each(const Take& take) const {
  optind = 0;  // glibc then begins anew
  opterr = 0;
  for (;;) {
    const int given = optind == 0 ? 1 : optind;
    int index = 0;
    const int flag = getopt_long(argc_, argv_, "+:", options_.data(), &index);
    if (flag == -1) break;
    if (flag == ':') return wrong_option(fmt::format("{} needs a value", argv_[given]));
    if (flag == '?') return wrong_option(fmt::format("there is no option {}", argv_[given]));
    const auto status = take(flag, options_[static_cast<std::size_t>(index)].name,
                             std::string_view(optarg == nullptr ? "" : optarg));
    if (status) return status;
  }
  if (optind < argc_) return wrong_option(fmt::format("it takes no argument ({})", argv_[optind]));
  return std::nullopt;
}

ExitStatus CommandLine::wrong_option(const std::string& message) const {
  fmt::print(stderr, "{}: {} ({} --help lists the options)\n", program_,
             model::plain_text(message, model::kMostLineBytes), program_);
  return ExitStatus::wrong_use;
}

ExitStatus CommandLine::wrong_value(const char* name, std::string_view value, const std::string& why) const {
  return wrong_option(fmt::format("--{} {}: {}", name, value, why));
}

}  // namespace berth::integrations
