// SPDX-License-Identifier: Apache-2.0
#include "model/plain_text.h"

#include "model/json_text.h"
#include "model/name.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::model {
namespace {

constexpr const char* kOverride = "\xE2\x80\xAE";       // U+202E
constexpr const char* kCsi = "\xC2\x9B";                // U+009B, which some terminals take for ESC [
constexpr const char* kNoCharacter = "\xEF\xBF\xBE";    // U+FFFE, which the bus refuses
constexpr const char* kTag = "\xF3\xA0\x80\x81";        // U+E0001
constexpr const char* kLineSeparator = "\xE2\x80\xA8";  // U+2028

std::string utf8(char32_t character) {
  std::string text;
  const auto add = [&](char32_t lead, int bits) {
    text += static_cast<char>(lead | (character >> bits));
    while ((bits -= 6) >= 0) text += static_cast<char>(0x80 | ((character >> bits) & 0x3F));
  };
  if (character < 0x800) {
    add(0xC0, 6);
  } else if (character < 0x10000) {
    add(0xE0, 12);
  } else {
    add(0xF0, 18);
  }
  return text;
}

TEST(PlainText, LeavesOrdinaryTextAlone) {
  for (const char* text : {"", "web.service", "a\\x2db", "größe 測試", "\"quoted\"", "\xF0\x9F\x98\x80"})
    EXPECT_EQ(plain_text(text, kMostLineBytes), text);
}

TEST(PlainText, EscapesWhatATerminalObeysOrTheBusRefuses) {
  EXPECT_EQ(plain_text("a\nb\tc\rd", 100), "a\\nb\\tc\\rd");
  EXPECT_EQ(plain_text("\x1b[2J\x7f", 100), "\\x1b[2J\\x7f");
  EXPECT_EQ(plain_text(std::string("a\0b", 3), 100), "a\\x00b");
  EXPECT_EQ(plain_text(kCsi, 100), "\\u009b");
  EXPECT_EQ(plain_text(kOverride, 100), "\\u202e");
  EXPECT_EQ(plain_text(kLineSeparator, 100), "\\u2028");
  EXPECT_EQ(plain_text(kNoCharacter, 100), "\\ufffe");
  EXPECT_EQ(plain_text(kTag, 100), "\\ue0001");
  EXPECT_EQ(plain_text("a\xff\xC3", 100), "a\\xff\\xc3");
  EXPECT_EQ(plain_text("\xED\xA0\x80", 100), "\\xed\\xa0\\x80");  // a surrogate
}

// Fillers, an empty pattern of Braille and variation selectors: "a" and "aX" look the same.
TEST(PlainText, EscapesCharactersWithoutInk) {
  const std::vector<std::pair<char32_t, std::string>> unseen{
      {0x034F, "\\u034f"}, {0x115F, "\\u115f"},   {0x1160, "\\u1160"},  {0x180B, "\\u180b"},
      {0x2800, "\\u2800"}, {0x3164, "\\u3164"},   {0xFE00, "\\ufe00"},  {0xFE0F, "\\ufe0f"},
      {0xFFA0, "\\uffa0"}, {0xE0100, "\\ue0100"}, {0xE01EF, "\\ue01ef"}};
  for (const auto& [character, escape] : unseen) {
    EXPECT_TRUE(is_unseen(character)) << escape;
    EXPECT_EQ(plain_text("a" + utf8(character), 100), "a" + escape);
  }
  for (const char32_t seen : {U'\u034E', U'\u1161', U'\u2801', U'\u3163', U'\uFE10', U'\uFFA1'})
    EXPECT_FALSE(is_unseen(seen)) << static_cast<unsigned>(seen);
}

TEST(PlainText, IsShortWhateverItIsMadeOf) {
  for (const char* part : {"a", "\x1b", "\xff", "\xE2\x80\xAE", "\xE6\xBC\xA2"}) {
    std::string text = "begin ";
    while (text.size() < 100'000) text += part;
    const std::string plain = plain_text(text + " end", 2000);
    EXPECT_LE(plain.size(), 2003U) << "the ellipsis may come on top";
    EXPECT_TRUE(plain.starts_with("begin ") && plain.ends_with(" end")) << plain;
  }
}

TEST(PlainText, IsTheSameWhenItIsMadePlainAgain) {
  const std::string once = plain_text("\x1b\xff\n" + std::string(kOverride), 100);
  EXPECT_EQ(plain_text(once, 100), once);
}

TEST(PlainJson, IsReadAsTheSameValueAndHasNothingThatATerminalObeys) {
  const nlohmann::json document{
      {"a\x7f", std::string(kCsi) + kOverride + kNoCharacter + kTag + "\x1b größe"}};
  const std::string text = json_text(document);
  EXPECT_EQ(text, R"({"a\u007f":"\u009b\u202e\ufffe\udb40\udc01\u001b größe"})");
  EXPECT_EQ(json_of(text), document);
}

TEST(Name, DoesNotTurnTheDirectionOfWriting) {
  EXPECT_FALSE(is_name(std::string("web") + kOverride + "gpj"));
  EXPECT_FALSE(is_name("\xE2\x81\xA6x\xE2\x81\xA9"));  // U+2066, U+2069
  EXPECT_FALSE(is_name(std::string("a") + kLineSeparator));
  EXPECT_TRUE(is_name("\xD7\xA9\xD7\x9C"));  // Hebrew needs none of them
  EXPECT_EQ(to_name(std::string("web") + kOverride + "gpj"), "web?gpj");
}

}  // namespace
}  // namespace berth::model
