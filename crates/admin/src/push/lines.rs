//! NDJSON: lines out of pieces.

use bytes::BytesMut;

/// Gathers pieces and gives whole lines, blanks around them and empty ones left out, each with its number.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line break.
    scanned: usize,
    line: usize,
}

impl Lines {
    /// Adds a piece.
    pub(super) fn feed(&mut self, piece: &[u8]) {
        self.buffer.extend_from_slice(piece);
    }

    /// The next whole line and its number, from 0.
    pub(super) fn next(&mut self) -> Option<(usize, BytesMut)> {
        loop {
            let Some(end) = self.buffer[self.scanned..].iter().position(|&byte| byte == b'\n') else {
                self.scanned = self.buffer.len();
                return None;
            };
            let mut line = self.buffer.split_to(self.scanned + end + 1);
            self.scanned = 0;
            self.line += 1;
            let start = line.len() - line.trim_ascii_start().len();
            let _ = line.split_to(start);
            line.truncate(line.trim_ascii_end().len());
            if !line.is_empty() {
                return Some((self.line - 1, line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_wherever_the_pieces_break() {
        let text = b" {\"a\":1}\r\n\n\n{\"b\":\"x\"} \n{}";
        for size in 1..text.len() {
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for piece in text.chunks(size).chain([&b"\n"[..]]) {
                lines.feed(piece);
                while let Some((index, line)) = lines.next() {
                    found.push((index, String::from_utf8(line.to_vec()).unwrap()));
                }
            }
            let wanted = [(0, r#"{"a":1}"#), (3, r#"{"b":"x"}"#), (4, "{}")];
            assert_eq!(found, wanted.map(|(index, line)| (index, line.to_owned())), "pieces of {size}");
        }
    }
}
