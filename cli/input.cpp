// SPDX-License-Identifier: Apache-2.0
#include "cli/input.h"

#include "cli/text.h"
#include "model/json.h"
#include "model/text.h"
#include "os/read_file.h"
#include "topology/discover.h"

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::cli {

namespace {

tl::unexpected<Problem> unreadable(const std::string& file, int error) {
  return problem(Exit::wrong_use,
                 fmt::format("cannot read {}: {}", input_name(file), std::generic_category().message(error)));
}

}  // namespace

std::string input_name(const std::string& file) { return file == "-" ? "standard input" : file; }

Outcome<os::FileDescriptor> open_input(const std::string& file) {
  os::FileDescriptor fd(file == "-" ? dup(STDIN_FILENO) : open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return unreadable(file, errno);
  return fd;
}

Outcome<std::string> read_input(const std::string& file, std::size_t most_bytes) {
  const auto fd = open_input(file);
  if (!fd) return tl::unexpected(fd.error());
  std::string text;
  if (!os::read_up_to(fd->get(), most_bytes + 1, text)) return unreadable(file, errno);
  if (text.size() > most_bytes) return unreadable(file, EFBIG);
  return text;
}

Outcome<model::Snapshot> parse_snapshot(std::ostream& err, const std::string& text, const std::string& name) {
  auto parsed = model::parse_snapshot(text, topology::resolve);
  if (!parsed) return problem(parsed.error().context(name));
  warn(err, parsed->warnings, name);
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

void declare_policy_options(const Options& options, PolicyArguments& arguments) {
  options.option("--config", arguments.config, "Settings of this file in place of the defaults")
      .type_name("FILE");
  options.option("-o", arguments.overrides, "Override one setting; may be repeated")
      .type_name("KEY=VALUE")
      .one_value();
}

Outcome<policies::PolicySettings> policy_settings(std::ostream& err, const PolicyArguments& arguments) {
  config::Settings settings;
  if (arguments.config) {
    auto loaded = load_named_settings(*arguments.config);
    if (!loaded) return tl::unexpected(loaded.error());
    settings = std::move(*loaded);
  }
  for (const std::string& assignment : arguments.overrides) {
    if (const auto done = config::override_setting(settings, assignment); !done) return problem(done.error());
  }
  warn(err, settings.warnings);
  return settings.policies;
}

Outcome<Output> Output::open(const std::string& file, const char* command) {
  if (file == "-") return Output(os::FileDescriptor(dup(STDOUT_FILENO)), "standard output");
  os::FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) {
    const std::string advice = errno == EEXIST ? fmt::format("; {} writes no file anew", command) : "";
    return problem(Exit::wrong_use,
                   model::Error::from_errno(errno, "cannot write " + file).message() + advice);
  }
  return Output(std::move(fd), file);
}

model::Result<void> Output::write(std::string_view bytes) const {
  if (!os::write_all(fd_.get(), bytes))
    return model::fail(model::Error::from_errno(errno, "cannot write " + name_));
  return {};
}

}  // namespace berth::cli
