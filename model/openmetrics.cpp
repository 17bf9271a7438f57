// SPDX-License-Identifier: Apache-2.0
#include "model/openmetrics.h"

#include "model/text.h"

#include <cstddef>

namespace berth::model {

namespace {

constexpr std::string_view kHelp = "# HELP ";
constexpr std::string_view kType = "# TYPE ";
constexpr std::string_view kTotal = "_total";

// Name and rest of a line of metadata, behind its keyword.
struct Metadata {
  std::string_view name;
  std::string_view rest;
};

Metadata split(std::string_view line, std::string_view keyword) {
  line.remove_prefix(keyword.size());
  const std::string_view name = take_part(line, " ");
  return {name, line};
}

// OpenMetrics escapes quotation marks in a HELP, too.
std::string with_escaped_quotes(std::string_view help) {
  std::string text;
  for (const char c : help) {
    if (c == '"') text += '\\';
    text += c;
  }
  return text;
}

void add_family(std::string& out, const Metadata& type, std::string_view help) {
  std::string_view name = type.name;
  if (type.rest == "counter" && name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  const std::string family(name);
  out += "# TYPE " + family + " " + std::string(type.rest) + "\n";
  for (const char* unit : {"seconds", "bytes", "ratio"}) {
    if (name.ends_with(std::string("_") + unit)) out += "# UNIT " + family + " " + unit + "\n";
  }
  if (!help.empty()) out += "# HELP " + family + " " + with_escaped_quotes(help) + "\n";
}

}  // namespace

std::string openmetrics_text(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  Metadata help;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with(kHelp)) {
      help = split(line, kHelp);
    } else if (line.starts_with(kType)) {
      const Metadata type = split(line, kType);
      add_family(out, type, help.name == type.name ? help.rest : std::string_view());
    } else if (!line.empty()) {
      out += line;
      out += '\n';
    }
  }
  return out + "# EOF\n";
}

}  // namespace berth::model
