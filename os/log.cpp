// SPDX-License-Identifier: Apache-2.0
#include "os/log.h"

#include "model/plain_text.h"
#include "os/outbox.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

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

int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return LOG_DEBUG;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::critical:
      return LOG_CRIT;
    default:
      return LOG_INFO;
  }
}

class JournalSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string text(message.payload.data(), message.payload.size());
    const std::size_t bytes = text.size();
    journal_outbox().post(bytes, [text = std::move(text), priority = priority_of(message.level)] {
      // The text is one plain line.
      (void)sd_journal_send("MESSAGE=%s", text.c_str(), "PRIORITY=%i", priority, "SYSLOG_IDENTIFIER=berthd",
                            nullptr);
    });
  }
  void flush_() override {}
};

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
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("berthd", std::make_shared<JournalSink>()));
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
