// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/daemon/report/exposition.h"

#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

namespace berth::daemon::test {

namespace {

std::string take_value(const std::string& line, std::size_t& at) {
  std::string value;
  for (; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\') {
      value += line[at];
      continue;
    }
    const char escaped = at + 1 < line.size() ? line[++at] : '\0';
    if (escaped != '\\' && escaped != '"' && escaped != 'n') throw std::runtime_error("escape: " + line);
    value += escaped == 'n' ? '\n' : escaped;
  }
  if (at == line.size()) throw std::runtime_error("open label value: " + line);
  ++at;
  return value;
}

Sample parse_sample(const std::string& line, std::size_t at) {
  static const std::regex kLabel(R"(^[a-zA-Z_][a-zA-Z0-9_]*$)");
  Sample sample;
  if (line.at(at) == '{') {
    do {
      const std::size_t equals = line.find("=\"", ++at);
      if (equals == std::string::npos) throw std::runtime_error("label: " + line);
      const std::string name = line.substr(at, equals - at);
      if (!std::regex_match(name, kLabel)) throw std::runtime_error("label name: " + line);
      at = equals + 2;
      if (!sample.labels.emplace(name, take_value(line, at)).second) {
        throw std::runtime_error("label twice: " + line);
      }
    } while (line.at(at) == ',');
    if (line.at(at) != '}') throw std::runtime_error("labels: " + line);
    ++at;
  }
  if (line.at(at) != ' ') throw std::runtime_error("no blank before the value: " + line);
  std::size_t used = 0;
  const std::string number = line.substr(at + 1);
  sample.value = std::stod(number, &used);
  if (used != number.size()) throw std::runtime_error("value: " + line);
  return sample;
}

}  // namespace

std::map<std::string, Family> parse_exposition(const std::string& text) {
  static const std::regex kComment(R"(^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$)");
  static const std::set<std::string> kTypes{"counter", "gauge"};
  std::map<std::string, Family> families;
  std::string current;
  if (!text.empty() && text.back() != '\n') throw std::runtime_error("no line feed at the end");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch comment;
    if (std::regex_match(line, comment, kComment)) {
      const std::string name = comment[2];
      if (name != current && families.contains(name)) throw std::runtime_error("family twice: " + line);
      Family& family = families[name];
      current = name;
      std::string& what = comment[1] == "HELP" ? family.help : family.type;
      if (!what.empty() || !family.samples.empty()) throw std::runtime_error("misplaced: " + line);
      what = comment[3];
      if (comment[1] == "TYPE" && !kTypes.contains(what)) throw std::runtime_error("type: " + line);
      continue;
    }
    const std::size_t end = line.find_first_of("{ ");
    if (end == std::string::npos || line.substr(0, end) != current) {
      throw std::runtime_error("sample outside of its family: " + line);
    }
    Family& family = families[current];
    if (family.help.empty() || family.type.empty()) throw std::runtime_error("no HELP or TYPE: " + line);
    Sample sample = parse_sample(line, end);
    for (const Sample& other : family.samples) {
      if (other.labels == sample.labels) throw std::runtime_error("sample twice: " + line);
    }
    family.samples.push_back(std::move(sample));
  }
  for (const auto& [name, family] : families) {
    if (family.samples.empty()) throw std::runtime_error("no sample: " + name);
    if ((family.type == "counter") != name.ends_with("_total")) throw std::runtime_error("counter: " + name);
  }
  return families;
}

}  // namespace berth::daemon::test
