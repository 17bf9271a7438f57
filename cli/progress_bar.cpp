// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <algorithm>
#include <ostream>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace berth::cli {

namespace {

constexpr std::chrono::milliseconds kEvery{100};
constexpr std::size_t kBar = 30;
constexpr std::size_t kDefaultWidth = 80;

}  // namespace

std::string progress_line(double share, const std::string& text, std::size_t width) {
  share = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * static_cast<double>(kBar));
  const std::string line =
      fmt::format("[{:<{}}] {:>3.0f} %  {}", std::string(full, '#'), kBar, share * 100, text);
  return line.substr(0, width);
}

ProgressBar::ProgressBar(std::ostream& out, int fd) : out_(out) {
  if (isatty(fd) == 0) return;
  winsize size{};
  width_ = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefaultWidth;
}

ProgressBar::~ProgressBar() { clear(); }

bool ProgressBar::is_due() const {
  return is_shown() && (!drawn_ || std::chrono::steady_clock::now() - drawn_at_ >= kEvery);
}

void ProgressBar::draw(const std::string& line) {
  if (!is_shown()) return;
  // The last column stays free: a terminal may go to the next line after it.
  out_ << '\r' << line.substr(0, width_ - 1) << "\x1b[K" << std::flush;
  drawn_ = true;
  drawn_at_ = std::chrono::steady_clock::now();
}

void ProgressBar::show(double share, const std::string& text) {
  if (is_shown()) draw(progress_line(share, text, width_));
}

void ProgressBar::show(const std::string& text) { draw(text); }

void ProgressBar::clear() {
  if (drawn_) out_ << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

}  // namespace berth::cli
