// SPDX-License-Identifier: Apache-2.0
// Holds the manual pages against the programs, the configuration's keys and the introspection XML, in both
// directions.
#include "config/config.h"
#include "tests/paths.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace {

using Names = std::set<std::string>;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string page(const std::string& name) { return read_file(std::string(BERTH_MAN_DIR) + "/" + name); }

std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");  // NOLINT(cert-env33-c): our own program
  EXPECT_NE(pipe, nullptr);
  std::array<char, 4096> buffer{};
  while (std::size_t length = fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), length);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 0) << command << "\n" << output;
  return output;
}

Names find_all(const std::string& text, const std::string& pattern) {
  Names names;
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  for (auto match = std::sregex_iterator(text.begin(), text.end(), regex); match != std::sregex_iterator();
       ++match)
    names.insert((*match)[1].str());
  return names;
}

// The part of a page between one ".Ss TITLE" (or .Sh) and the next.
std::string section(const std::string& text, const std::string& title) {
  const std::size_t begin = text.find("\n.Ss " + title + "\n");
  if (begin == std::string::npos) return "";
  const std::size_t body = begin + title.size() + 6;
  return text.substr(body, std::min(text.find("\n.Ss ", body), text.find("\n.Sh ", body)) - body);
}

Names long_options(const std::string& help) {
  Names options = find_all(help, R"(--([a-z][a-z-]+))");
  return options;
}

Names documented_options(const std::string& text) { return find_all(text, R"(Fl -([a-z][a-z-]+))"); }

TEST(BerthTomlPage, DocumentsEveryKeyAndNoOther) {
  const std::string text = page("berth.toml.5");
  Names known;
  Names documented;
  Names sections;
  for (const auto& key : berth::config::known_keys()) {
    known.insert(key.name);
    const std::size_t dot = key.name.find('.');
    sections.insert(dot == std::string::npos ? "" : key.name.substr(0, dot));
  }
  for (const std::string& name : sections) {
    const std::string body = section(text, name.empty() ? "Top level" : "[" + name + "]");
    for (const std::string& key : find_all(body, R"(^\.It Ic (\S+))"))
      documented.insert(name.empty() ? key : name + "." + key);
  }
  EXPECT_EQ(documented, known);
}

TEST(BerthTomlPage, DocumentsEveryDefault) {
  const std::string text = page("berth.toml.5");
  for (const auto& key : berth::config::known_keys()) {
    const std::size_t dot = key.name.find('.');
    const std::string body =
        section(text, dot == std::string::npos ? "Top level" : "[" + key.name.substr(0, dot) + "]");
    std::string value = key.default_text;
    if (value.size() >= 2 && value.front() == '"')
      value = "Qq" + (value.size() > 2 ? " " + value.substr(1, value.size() - 2) : "");
    const std::string line =
        ".It Ic " + key.name.substr(dot == std::string::npos ? 0 : dot + 1) + " No = " + value + "\n";
    EXPECT_NE(body.find(line), std::string::npos) << "expected in berth.toml.5: " << line;
  }
}

// Of one key, to the next one's.
std::string entry(const std::string& body, const std::string& key) {
  std::size_t begin = body.find(".It Ic " + key + " ");
  if (begin == std::string::npos) begin = body.find(".It Ic " + key + "\n");
  if (begin == std::string::npos) return "";
  return body.substr(begin, std::min(body.find("\n.It ", begin), body.find("\n.El", begin)) - begin + 1);
}

// Choices and names are said in words.
void expect_range(const berth::config::Key& key, const std::string& text) {
  if (key.type != "integer" && key.type != "number" && key.type != "duration") return;
  ASSERT_FALSE(key.range.empty()) << key.name;
  EXPECT_NE(text.find("\nFrom " + key.range + ".\n"), std::string::npos)
      << "expected in berth.toml.5, of " << key.name << ": From " << key.range << ".";
}

TEST(BerthTomlPage, DocumentsEveryRange) {
  const std::string text = page("berth.toml.5");
  for (const auto& key : berth::config::known_keys()) {
    const std::size_t dot = key.name.find('.');
    if (dot == std::string::npos) continue;
    const std::string body = section(text, "[" + key.name.substr(0, dot) + "]");
    expect_range(key, entry(body, key.name.substr(dot + 1)));
  }
  const std::string rules = section(text, "[[workload]]");
  for (const auto& key : berth::config::known_workload_keys()) expect_range(key, entry(rules, key.name));
}

TEST(BerthTomlPage, DocumentsEveryWorkloadKeyAndNoOther) {
  Names known;
  for (const auto& key : berth::config::known_workload_keys()) known.insert(key.name);
  EXPECT_EQ(find_all(section(page("berth.toml.5"), "[[workload]]"), R"(^\.It Ic (\S+))"), known);
}

TEST(BerthdPage, DocumentsEveryOptionAndNoOther) {
  EXPECT_EQ(documented_options(page("berthd.8")), long_options(output_of(std::string(BERTHD) + " --help")));
}

TEST(BerthKubePage, DocumentsEveryOptionAndNoOther) {
  EXPECT_EQ(documented_options(page("berth-kube.8")),
            long_options(output_of(std::string(BERTH_KUBE) + " --help")));
}

TEST(BerthSlurmPage, DocumentsEveryOptionAndNoOther) {
  EXPECT_EQ(documented_options(page("berth-slurm.8")),
            long_options(output_of(std::string(BERTH_SLURM) + " --help")));
}

TEST(BerthctlPage, DocumentsEveryCommandAndNoOther) {
  const std::string help = output_of(std::string(BERTHCTL) + " --help");
  const std::size_t end = help.find("Options:");
  ASSERT_NE(end, std::string::npos) << help;
  EXPECT_EQ(find_all(page("berthctl.1"), R"(^\.It Cm (\S+))"),
            find_all(help.substr(0, end), R"( {2,}([a-z][a-z-]*) +[A-Z])"));
}

TEST(BerthctlPage, DocumentsEveryOptionOfEveryCommandAndNoOther) {
  Names options = long_options(output_of(std::string(BERTHCTL) + " --help"));
  for (const std::string& command : find_all(page("berthctl.1"), R"(^\.It Cm (\S+))"))
    options.merge(long_options(output_of(std::string(BERTHCTL) + " " + command + " --help")));
  EXPECT_EQ(documented_options(page("berthctl.1")), options);
}

TEST(BusPage, DocumentsEveryMethodSignalAndPropertyAndNoOther) {
  const std::string text = page("org.berth.Node1.5");
  for (const std::string interface : {"Manager", "Workload"}) {
    const std::string file = interface == "Manager" ? "org.berth.Node1.xml" : "org.berth.Node1.Workload.xml";
    const std::string xml = read_file(std::string(BERTH_BUS_DIR) + "/" + file);
    const std::string body = section(text, "org.berth.Node1." + interface);
    EXPECT_EQ(find_all(body, R"(^\.It Fn (\S+))"), find_all(xml, R"re(<(?:method|signal) name="(\w+)")re"));
    Names properties;
    for (const std::string& line : find_all(body, R"(^\.It Va (.*)$)"))
      properties.merge(find_all(" Va " + line, R"((?:Va|,) ([A-Z]\w+))"));
    EXPECT_EQ(properties, find_all(xml, R"re(<property name="(\w+)")re"));
  }
}

}  // namespace
