// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/problem.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace berth::cli {

enum class Key { other, up, down, page_up, page_down, home, end, space, quit };

// The end of a wait: a key, a signal, or nothing but time.
struct Event {
  enum class Kind { none, key, resized, ended } kind = Kind::none;
  Key key = Key::other;
  char character = 0;  // of a key that is one
  int signal = 0;      // the signal that asks the program to end
};

// Takes over the terminal on standard input and output: the alternate screen, no echo, and keys as they are
// typed. Also takes the signals that end, stop or resize. The destructor restores everything. So does a stop
// of the program (SIGTSTP) for as long as it lasts.
class Terminal {
 public:
  // Problem failed where standard input or output is no terminal.
  static Outcome<std::unique_ptr<Terminal>> take();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Replaces the shown text. Lines end in '\n', and text that does not fit is cut. If the terminal does not
  // read, it waits until an event comes.
  void show(const std::string& text);
  // The next event, or none after `timeout`, or where there are `events` of poll(2) on `fd`.
  Event wait(std::chrono::milliseconds timeout, int fd = -1, short events = 0);

  // Rows of the terminal on standard output.
  static std::size_t rows();

 private:
  struct State;
  explicit Terminal(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The bytes that show `text` on a terminal of `height` lines.
std::string drawing(const std::string& text, std::size_t height);
// The first key in the bytes from a terminal, and its length in bytes; nullopt for the empty text.
std::optional<std::pair<Event, std::size_t>> next_key(const std::string& typed);

}  // namespace berth::cli
