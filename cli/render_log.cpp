// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "model/json_text.h"

#include <ostream>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace berth::cli {

namespace {

Colour colour_of(const std::string& result) {
  if (result == "applied" || result == "restored") return Colour::green;
  if (result == "failed") return Colour::red;
  return result == "observed" ? Colour::dim : Colour::yellow;
}

std::string value_of(const Document& entry, const char* name) {
  const Document& value = member(entry, name);
  if (value.is_null()) return "-";
  const std::string text = value.is_string() ? value.get<std::string>() : model::json_text(value);
  return text.empty() ? "(none)" : text;
}

// "POLICY DECISION: REASON", each of which may be missing: a restore is no policy's decision.
std::string why_of(const Document& entry) {
  std::string why = text_of(entry, "policy");
  for (const auto& [separator, part] :
       {std::pair(" ", text_of(entry, "decision")), std::pair(": ", text_of(entry, "reason"))}) {
    if (!why.empty() && !part.empty()) why += separator;
    why += part;
  }
  return why;
}

}  // namespace

void render_log(std::ostream& out, const Document::array_t& entries, const Style& style, const char* indent) {
  for (const Document& entry : entries) {
    const auto time = number_of(entry, "time");
    const std::string result = text_of(entry, "result");
    out << indent << (time ? format_time(*time) : "-") << "  "
        << paint(style, colour_of(result), fmt::format("{:<8}", printable(result))) << "  "
        << printable(sentence_of(entry)) << "\n";
    const std::string why = why_of(entry);
    if (!why.empty()) out << indent << "    " << paint(style, Colour::dim, printable(why)) << "\n";
    if (const std::string error = text_of(entry, "error"); !error.empty()) {
      out << indent << "    " << paint(style, Colour::red, printable(error)) << "\n";
    }
  }
}

void render_restore(std::ostream& out, const Document& report, const Style& style) {
  const auto& restored = list_of(report, "restored");
  const auto& left = list_of(report, "left");
  const auto& gone = list_of(report, "gone");
  for (const Document& change : restored) {
    out << paint(style, Colour::green, "restored") << "  "
        << printable(fmt::format("{}  {}: {} -> {}", text_of(change, "workload"),
                                 text_of(change, "attribute"), value_of(change, "before"),
                                 value_of(change, "after")))
        << "\n";
  }
  for (const Document& kept : left) {
    out << paint(style, Colour::yellow, "left    ") << "  "
        << printable(fmt::format("{}  {}: {}", text_of(kept, "workload"), text_of(kept, "attribute"),
                                 text_of(kept, "reason")))
        << "\n";
  }
  if (const auto interrupts = number_of(report, "interrupts"); interrupts && *interrupts > 0)
    out << paint(style, Colour::green, "restored")
        << fmt::format("  the vCPUs of {:.0f} interrupts\n", *interrupts);
  out << fmt::format("{} put back, {} left as they are, {} gone with their workloads\n", restored.size(),
                     left.size(), gone.size());
}

}  // namespace berth::cli
