// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

std::vector<Key> keys_of(std::string typed) {
  std::vector<Key> keys;
  while (const auto key = next_key(typed)) {
    EXPECT_GT(key->second, 0U);
    keys.push_back(key->first.key);
    typed.erase(0, key->second);
  }
  return keys;
}

using Keys = std::vector<Key>;

TEST(Keys, ArrowsAndPagesAreKnownInBothModes) {
  EXPECT_EQ(keys_of("\x1b[A\x1bOA\x1b[B\x1bOB"), (Keys{Key::up, Key::up, Key::down, Key::down}));
  EXPECT_EQ(keys_of("\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[1~\x1b[4~"),
            (Keys{Key::page_up, Key::page_down, Key::home, Key::end, Key::home, Key::end}));
}

TEST(Keys, LettersAreThemselves) {
  EXPECT_EQ(keys_of("q \n"), (Keys{Key::quit, Key::space, Key::space}));
  EXPECT_EQ(next_key("s")->first.character, 's');
}

TEST(Keys, AnUnknownSequenceIsOneKeyThatDoesNothing) {
  EXPECT_EQ(keys_of("\x1b[1;5Aq"), (Keys{Key::other, Key::quit})) << "its letters are no commands";
  EXPECT_EQ(keys_of("\x1b[200~q"), (Keys{Key::other, Key::quit}));
  EXPECT_EQ(keys_of("\x1b"), (Keys{Key::other}));
  EXPECT_EQ(keys_of("\x1b["), (Keys{Key::other}));
  EXPECT_EQ(keys_of("\x1b[12"), (Keys{Key::other}));
  EXPECT_FALSE(next_key("").has_value());
}

TEST(Drawing, ClearsEachLineBeforeItsTextAndAllBelow) {
  EXPECT_EQ(drawing("ab\ncd\n", 3), "\x1b[H\x1b[Kab\r\n\x1b[Kcd\r\n\x1b[J");
  EXPECT_EQ(drawing("ab\ncd\n", 2), "\x1b[H\x1b[Kab\r\n\x1b[Kcd") << "a full screen does not scroll";
}

}  // namespace

}  // namespace berth::cli
