// SPDX-License-Identifier: Apache-2.0
// A reader of its own of Prometheus's text format 0.0.4, stricter than scrapers are.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace berth::daemon::test {

struct Sample {
  std::map<std::string, std::string> labels;  // escapes undone
  double value = 0;
};

struct Family {
  std::string help;
  std::string type;
  std::vector<Sample> samples;
};

// By name. Throws std::runtime_error with the line that breaks a rule of the format. HELP and TYPE come once
// each before the samples. All samples of a family come together, none of them twice. Names have allowed
// letters only, each family has a sample, and a line feed is at the end.
std::map<std::string, Family> parse_exposition(const std::string& text);

}  // namespace berth::daemon::test
