// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>

namespace berth::cli {

// "[#####     ]  50 %  TEXT", of at most `width` columns.
std::string progress_line(double share, const std::string& text, std::size_t width);

// A line on a terminal that is drawn again and again. On anything else it shows nothing.
class ProgressBar {
 public:
  // `out` is the stream of descriptor `fd`.
  ProgressBar(std::ostream& out, int fd);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool is_shown() const { return width_ > 0; }
  // Whether enough time has passed since the last drawing.
  bool is_due() const;
  // `share` 0..1 of the work is done.
  void show(double share, const std::string& text);
  // Shows a text alone, where the end is not known.
  void show(const std::string& text);
  // Removes the line.
  void clear();

 private:
  void draw(const std::string& line);

  std::ostream& out_;
  std::size_t width_ = 0;  // 0: no terminal
  bool drawn_ = false;
  std::chrono::steady_clock::time_point drawn_at_;
};

}  // namespace berth::cli
