// SPDX-License-Identifier: Apache-2.0
#include "os/log.h"

#include "model/plain_text.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/systemd_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {

namespace {

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 6> kLevels{{
    {"trace", spdlog::level::trace},
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warning", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"critical", spdlog::level::critical},
}};

spdlog::level::level_enum of_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::critical:
      break;
  }
  return spdlog::level::critical;
}

}  // namespace

bool stderr_is_journal() {
  // The variable is inherited even where standard error has been redirected: only the file's identity counts.
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

void setup_log() {
  if (stderr_is_journal()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "berthd", std::make_shared<spdlog::sinks::systemd_sink_st>("berthd")));
    return;
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  sink->set_pattern("berthd: %l: %v");
  auto logger = std::make_shared<spdlog::logger>("berthd", std::move(sink));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

bool logs(LogLevel level) { return spdlog::should_log(of_spdlog(level)); }

// Names and error texts in a message may be of others.
void log_line(LogLevel level, std::string_view message) {
  spdlog::log(of_spdlog(level), model::plain_text(message, model::kMostLineBytes));
}

model::Result<void> set_log_level(std::string_view level) {
  for (const auto& [name, value] : kLevels) {
    if (name != level) continue;
    spdlog::set_level(value);
    return {};
  }
  return model::fail(
      model::ErrorKind::invalid_input,
      fmt::format("log level \"{}\": must be trace, debug, info, warning, error or critical", level));
}

std::string log_level() {
  for (const auto& [name, value] : kLevels) {
    if (value == spdlog::get_level()) return std::string(name);
  }
  return "info";
}

}  // namespace berth::os
