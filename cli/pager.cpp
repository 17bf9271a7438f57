// SPDX-License-Identifier: Apache-2.0
#include "cli/pager.h"

#include "cli/terminal.h"
#include "cli/text.h"
#include "model/text.h"
#include "os/read_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <systemd/sd-login.h>
#include <unistd.h>

namespace berth::cli {

namespace {

constexpr int kShellFoundNothing = 127;  // sh(1)

// Keeps a signal ignored, as the pager's user ends the pager and not this program.
class Ignored {
 public:
  explicit Ignored(int signal) : signal_(signal) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(signal_, &ignore, &before_);
  }
  ~Ignored() { sigaction(signal_, &before_, nullptr); }
  Ignored(const Ignored&) = delete;
  Ignored& operator=(const Ignored&) = delete;

 private:
  int signal_;
  struct sigaction before_ {};
};

// Whether this process has the rights of another user than the one who logged in, as with sudo(8).
bool has_borrowed_rights() {
  const std::string own = std::to_string(geteuid());
  for (const char* name : {"SUDO_UID", "PKEXEC_UID"}) {
    const char* uid = std::getenv(name);
    if (uid != nullptr && uid != own) return true;
  }
  uid_t owner = 0;
  return geteuid() != getuid() || (sd_pid_get_owner_uid(0, &owner) >= 0 && owner != geteuid());
}

using Words = std::vector<std::string>;

std::vector<Words> pagers(bool borrowed) {
  if (borrowed) return {{"less"}};
  if (const char* pager = std::getenv("PAGER")) return {{"/bin/sh", "-c", pager}};
  return {{"pager"}, {"less"}, {"more"}};
}

// This process's variables, with those of the pager.
Words environment(bool borrowed) {
  Words variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool runs_programs = text.starts_with("LESSOPEN=") || text.starts_with("LESSCLOSE=");
    if (!(borrowed && runs_programs)) variables.emplace_back(text);
  }
  if (std::getenv("LESS") == nullptr) variables.emplace_back("LESS=FRX");
  if (std::getenv("LV") == nullptr) variables.emplace_back("LV=-c");
  if (borrowed) variables.insert(variables.begin(), "LESSSECURE=1");
  return variables;
}

std::vector<char*> pointers(Words& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// Starts a program that reads from `input`; -1 where it does not exist.
pid_t start(Words program, Words variables, int input) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawnattr_init(&attributes);
  sigset_t usual;
  sigemptyset(&usual);
  for (const int signal : {SIGINT, SIGQUIT, SIGPIPE}) sigaddset(&usual, signal);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const auto argv = pointers(program);
  const auto envp = pointers(variables);
  if (posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), envp.data()) != 0) pid = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

// False where no pager showed it.
bool show(const std::string& text) {
  const bool borrowed = has_borrowed_rights();
  const Words variables = environment(borrowed);
  for (const Words& pager : pagers(borrowed)) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    const Ignored interrupt(SIGINT);
    const Ignored quit(SIGQUIT);
    const Ignored broken_pipe(SIGPIPE);
    const pid_t pid = start(pager, variables, ends[0]);
    close(ends[0]);
    if (pid >= 0) (void)os::write_all(ends[1], text);  // the pager may have ended
    close(ends[1]);
    if (pid < 0) continue;
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return !(WIFEXITED(status) && WEXITSTATUS(status) == kShellFoundNothing);
  }
  return false;
}

// `line` without the control sequences that colour it.
std::string uncoloured(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line.substr(at, 2) == "\x1b[") {
      at = std::min(line.find('m', at), line.size());
    } else {
      plain += line[at];
    }
  }
  return plain;
}

}  // namespace

bool pager_is_wanted() {
  const char* terminal = std::getenv("TERM");
  const char* pager = std::getenv("PAGER");
  const bool none = pager != nullptr && (*pager == '\0' || std::string_view(pager) == "cat");
  return isatty(STDOUT_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb" && !none;
}

std::size_t rows_of(std::string_view text, std::size_t columns) {
  std::size_t rows = 0;
  while (!text.empty()) {
    const std::string_view line = model::take_line(text);
    const std::size_t width = columns == 0 ? 0 : display_width(uncoloured(line));
    rows += width == 0 ? 1 : (width + columns - 1) / columns;
  }
  return rows;
}

void page(std::ostream& out, const std::string& text) {
  // The shell's prompt needs a row, too.
  const bool fits = rows_of(text, terminal_style().width) < Terminal::rows();
  if (fits || !show(text)) out << text;
}

}  // namespace berth::cli
