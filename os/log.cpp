// SPDX-License-Identifier: Apache-2.0
#include "os/log.h"

#include "model/plain_text.h"
#include "os/outbox.h"

#include <algorithm>
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

struct Level {
  std::string_view name;
  spdlog::level::level_enum level;
  int priority;  // of syslog
};
constexpr std::array kLevels{
    Level{"trace", spdlog::level::trace, LOG_DEBUG}, Level{"debug", spdlog::level::debug, LOG_DEBUG},
    Level{"info", spdlog::level::info, LOG_INFO},    Level{"warning", spdlog::level::warn, LOG_WARNING},
    Level{"error", spdlog::level::err, LOG_ERR},     Level{"critical", spdlog::level::critical, LOG_CRIT}};

// LogLevel has no "trace".
static_assert(kLevels.size() == 2 + static_cast<std::size_t>(LogLevel::critical));
spdlog::level::level_enum of_spdlog(LogLevel level) {
  return kLevels.at(1 + static_cast<std::size_t>(level)).level;
}

int priority_of(spdlog::level::level_enum level) {
  const auto* row = std::ranges::find(kLevels, level, &Level::level);
  return row == kLevels.end() ? LOG_INFO : row->priority;
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
  if (const auto* row = std::ranges::find(kLevels, level, &Level::name); row != kLevels.end()) {
    spdlog::set_level(row->level);
    return {};
  }
  return model::fail(
      model::ErrorKind::invalid_input,
      fmt::format("log level \"{}\": must be trace, debug, info, warning, error or critical", level));
}

std::string log_level() {
  const auto* row = std::ranges::find(kLevels, spdlog::get_level(), &Level::level);
  return row == kLevels.end() ? "info" : std::string(row->name);
}

}  // namespace berth::os
