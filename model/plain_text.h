// SPDX-License-Identifier: Apache-2.0
// Text that others chose, such as error texts and names, on its way into the log, the journal and the bus.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::model {

// A line of the log, and the text of a journal entry. The beginning and the end of a longer one stay.
inline constexpr std::size_t kMostLineBytes = 2048;
// A field of the journal besides its text, and a text on the bus. No workload's id is longer.
inline constexpr std::size_t kMostFieldBytes = 4096;

// The character of one well-formed sequence of UTF-8 (utf8_length).
char32_t character_of(std::string_view sequence);

// C0, DEL, and C1 (U+0080 to U+009F), which a terminal may obey as well.
bool is_control(char32_t character);

// U+FDD0 to U+FDEF, and the last two of every plane. The bus refuses a text with one.
bool is_noncharacter(char32_t character);

// Whether the character has no width or no ink (fillers, variation selectors), separates lines, or turns the
// direction of writing. A text with such a character looks like another text.
bool is_unseen(char32_t character);

// Whether the character turns the direction of writing, or separates lines. It has no use in a name.
bool turns_direction(char32_t character);

// Returns `text` as one line that is safe for a terminal, the journal and the bus. Writes control characters,
// unseen characters and noncharacters as "\n", "\x1b" or "\u202e", and bytes that are not UTF-8 as "\xff".
// Keeps all other text, backslashes too. Cuts a text longer than `most` bytes in its middle ("…").
std::string plain_text(std::string_view text, std::size_t most);

// Returns `document`, a JSON text in UTF-8, with DEL, C1, unseen characters and noncharacters as "\u202e".
// A parser reads the same values. JSON itself escapes only the characters below U+0020.
std::string plain_json(std::string document);

}  // namespace berth::model
