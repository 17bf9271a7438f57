// SPDX-License-Identifier: Apache-2.0
#include "topology/xml_fault.h"

#include "model/plain_text.h"
#include "model/text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include <fmt/core.h>

namespace berth::topology {

namespace {

constexpr std::size_t kMostNameBytes = 32;  // of an element that is quoted

constexpr const char* kWriteOne = "`lstopo FILE.xml` writes one";

void skip(std::string_view& text, std::size_t count) { text.remove_prefix(std::min(count, text.size())); }

void skip_blanks(std::string_view& text) { text = model::trimmed_start(text, model::kBlanksAndBreaks); }

// Moves behind `end`; false where there is none.
bool skip_past(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  skip(text, at == std::string_view::npos ? at : at + end.size());
  return at != std::string_view::npos;
}

// Moves to the name of the first element, past the declaration, the document type and comments.
bool find_element(std::string_view& text) {
  if (text.starts_with("\xEF\xBB\xBF")) skip(text, 3);
  for (;;) {
    skip_blanks(text);
    if (!text.starts_with('<')) return false;
    if (text.starts_with("<!--")) {
      if (!skip_past(text, "-->")) return false;
    } else if (text.starts_with("<?") || text.starts_with("<!")) {
      if (!skip_past(text, ">")) return false;
    } else {
      skip(text, 1);
      return true;
    }
  }
}

// The value of an attribute among those of one element; nullopt where there is none.
std::optional<std::string_view> attribute(std::string_view attributes, std::string_view name) {
  for (;;) {
    skip_blanks(attributes);
    const std::size_t equals = attributes.find('=');
    if (equals == std::string_view::npos || equals + 1 >= attributes.size()) return std::nullopt;
    const auto key = model::trimmed_end(attributes.substr(0, equals), model::kBlanksAndBreaks);
    skip(attributes, equals + 1);
    skip_blanks(attributes);
    if (attributes.empty()) return std::nullopt;
    const char quote = attributes.front();
    if (quote != '"' && quote != '\'') return std::nullopt;
    skip(attributes, 1);
    const std::size_t end = attributes.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    if (key == name) return attributes.substr(0, end);
    skip(attributes, end + 1);
  }
}

std::optional<unsigned> major_version(std::string_view version) {
  unsigned major = 0;
  const auto read = std::from_chars(version.data(), version.data() + version.size(), major);
  if (read.ec != std::errc()) return std::nullopt;
  return major;
}

}  // namespace

std::optional<std::string> fault_of_export(std::string_view xml, unsigned reads) {
  std::string_view text = xml;
  skip_blanks(text);
  if (text.empty()) return fmt::format("it is empty; {}", kWriteOne);
  if (!find_element(text)) return fmt::format("it is no XML, so no export of hwloc; {}", kWriteOne);
  const std::string_view name = text.substr(0, text.find_first_of(" \t\r\n/>"));
  if (name == "topologydiff") {
    return "it is a difference of two topologies; hwloc-patch(1) applies it to an export";
  }
  if (name != "topology" && name != "root") {
    return fmt::format("its first element is <{}>, so it is no export of hwloc; {}",
                       model::plain_text(name, kMostNameBytes), kWriteOne);
  }
  skip(text, name.size());
  const auto version = attribute(text.substr(0, text.find('>')), "version");
  const auto major = version ? major_version(*version) : std::nullopt;
  if (major && *major > reads) {
    return fmt::format(
        "it was written by hwloc {}; this berth reads 1.x to {}.x: `lstopo --export-xml-flags v{} FILE.xml` "
        "writes an older format",
        *major, reads, reads);
  }
  if (text.find(fmt::format("</{}>", name)) == std::string_view::npos) {
    return fmt::format("its end is missing, so it was not copied as a whole; {}", kWriteOne);
  }
  return std::nullopt;
}

}  // namespace berth::topology
