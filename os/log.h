// SPDX-License-Identifier: Apache-2.0
// Messages of berthd, by way of spdlog. Its headers would put fmt's whole formatting, 60 kB, into each object
// that logs: log.cpp alone includes them.
#pragma once

#include "model/error.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::os {

enum class LogLevel { debug, info, warning, error, critical };

// True where standard error is the journal's stream (sd_journal(3), $JOURNAL_STREAM).
bool stderr_is_journal();

// Makes spdlog's default logger, the one global of the program: to the journal where standard error is
// connected to it, otherwise to standard error, a line a message. The journal's messages go by way of
// journal_outbox() (os/outbox.h), so that no message keeps its sender waiting.
void setup_log();

// "trace", "debug", "info", "warning", "error" or "critical". Error invalid_input for another word.
model::Result<void> set_log_level(std::string_view level);
std::string log_level();

// Whether messages of this level are written at all.
bool logs(LogLevel level);
void log_line(LogLevel level, std::string_view message);  // as one plain line (model/plain_text.h)

template <typename... Args>
void log_at(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
  if (logs(level)) log_line(level, fmt::vformat(text, fmt::make_format_args(args...)));
}

template <typename... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  log_at(LogLevel::debug, text, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_at(LogLevel::info, text, std::forward<Args>(args)...);
}
template <typename... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_at(LogLevel::warning, text, std::forward<Args>(args)...);
}
template <typename... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_at(LogLevel::error, text, std::forward<Args>(args)...);
}
template <typename... Args>
void log_critical(fmt::format_string<Args...> text, Args&&... args) {
  log_at(LogLevel::critical, text, std::forward<Args>(args)...);
}

}  // namespace berth::os
