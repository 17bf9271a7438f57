// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include "cli/text.h"
#include "model/json.h"
#include "model/text.h"
#include "topology/discover.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ostream>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

tl::unexpected<Problem> unreadable(const std::string& file, int error) {
  return problem(Exit::wrong_use,
                 fmt::format("cannot read {}: {}", input_name(file), std::generic_category().message(error)));
}

Outcome<std::string> read_all(int fd, const std::string& file, std::size_t most_bytes) {
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return unreadable(file, errno);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > most_bytes) return unreadable(file, EFBIG);
  }
}

}  // namespace

std::string input_name(const std::string& file) { return file == "-" ? "standard input" : file; }

Outcome<std::string> read_input(const std::string& file, std::size_t most_bytes) {
  if (file == "-") return read_all(STDIN_FILENO, file, most_bytes);
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return unreadable(file, errno);
  auto text = read_all(fd, file, most_bytes);
  close(fd);
  return text;
}

Outcome<model::Snapshot> parse_snapshot(std::ostream& err, const std::string& text, const std::string& name) {
  auto parsed = model::parse_snapshot(text, topology::resolve);
  if (!parsed) return problem(parsed.error().context(name));
  for (const std::string& warning : parsed->warnings) {
    err << "berthctl: warning: " << printable(name) << ": " << printable(warning) << "\n";
  }
  return std::move(parsed->snapshot);
}

std::vector<std::string_view> split_documents(std::string_view text) {
  std::vector<std::string_view> documents;
  while (!(text = model::trimmed_start(text, model::kBlanksAndBreaks)).empty()) {
    int depth = 0;
    bool in_string = false;
    std::size_t end = 0;
    while (end < text.size()) {
      const char c = text[end++];
      if (in_string) {
        if (c == '\\') ++end;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth <= 0) {
        break;
      }
    }
    end = std::min(end, text.size());
    documents.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return documents;
}

Outcome<config::Settings> load_settings(const std::string& file) {
  if (file == "-") {
    const auto text = read_input(file);
    if (!text) return tl::unexpected(text.error());
    auto settings = config::parse(*text, input_name(file));
    if (!settings) return problem(settings.error());
    return std::move(*settings);
  }
  if (!file.empty() && access(file.c_str(), R_OK) != 0) return unreadable(file, errno);
  auto settings = config::load(file.empty() ? config::kDefaultFile : file);
  if (!settings) return problem(settings.error());
  return std::move(*settings);
}

Outcome<config::Settings> load_named_settings(const std::string& file) {
  if (file.empty())
    return problem(Exit::wrong_use,
                   "the name of the configuration file is empty: give a file, or leave the option out");
  return load_settings(file);
}

Outcome<policies::PolicySettings> policy_settings(const std::optional<std::string>& file,
                                                  const std::vector<std::string>& overrides) {
  config::Settings settings;
  if (file) {
    auto loaded = load_named_settings(*file);
    if (!loaded) return tl::unexpected(loaded.error());
    settings = std::move(*loaded);
  }
  for (const std::string& assignment : overrides) {
    if (const auto done = config::override_setting(settings, assignment); !done) return problem(done.error());
  }
  return settings.policies;
}

}  // namespace berth::cli
