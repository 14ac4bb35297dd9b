//! Rust as the rules look at it: code apart from comments and from what stands in texts.

use super::tree::File;
use std::ops::Range;

/// One source file, read. Lines count from 0.
pub(super) struct Rust {
    /// The code without comments, texts emptied; as many lines as the file.
    pub(super) code: Vec<String>,
    /// Each text as it is written, and the line it begins on.
    pub(super) texts: Vec<(usize, String)>,
    /// Lines of items under `#[cfg(test)]`.
    tests: Vec<Range<usize>>,
    is_test: bool,
}

/// A function: the line of its signature, its name and its length.
pub(super) struct Function {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) lines: usize,
}

impl Rust {
    pub(super) fn read(file: &File) -> Self {
        let mut reader = Reader { chars: file.text.chars().collect(), ..Reader::default() };
        reader.run();
        let code: Vec<String> = reader.code.lines().map(str::to_owned).collect();
        let begins = |(line, code): (usize, &String)| Some((line, code.find("#[cfg(test)]")?));
        let tests = code.iter().enumerate().filter_map(begins);
        let tests = tests.map(|(line, column)| line..item(&code, line, column + 12).end).collect();
        Self { code, texts: reader.texts, tests, is_test: is_test_file(&file.path) }
    }

    pub(super) fn is_test(&self, line: usize) -> bool {
        self.is_test || self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// A text stands on this line, or goes on over it.
    pub(super) fn holds_text(&self, line: usize) -> bool {
        self.texts.iter().any(|(begin, text)| (*begin..=begin + text.matches('\n').count()).contains(&line))
    }

    /// How many lines ship.
    pub(super) fn shipped_lines(&self) -> usize {
        (0..self.code.len()).filter(|&line| !self.is_test(line)).count()
    }

    pub(super) fn functions(&self) -> Vec<Function> {
        let functions = self.code.iter().enumerate().filter_map(|(line, code)| {
            let column = word_at(code, "fn ")?;
            let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
            let name: String = code[column + 3..].chars().take_while(is_name).collect();
            let item = item(&self.code, line, column);
            (!name.is_empty()).then(|| Function { line, name, lines: item.len() })
        });
        functions.collect()
    }

    /// The lines of the first item whose code holds `begin`.
    pub(super) fn item(&self, begin: &str) -> Range<usize> {
        let line = self.code.iter().position(|code| code.contains(begin));
        item(&self.code, line.unwrap_or_else(|| panic!("there is no {begin}")), 0)
    }
}

/// Under `tests/`, or a module that is a test as a whole.
fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || ["/tests/", "/tests.rs", "/benches/"].iter().any(|part| path.contains(part))
}

/// Where a word stands that is not the end of a longer one.
fn word_at(code: &str, word: &str) -> Option<usize> {
    let is_own = |at: &usize| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    code.match_indices(word).map(|(at, _)| at).find(is_own)
}

/// The lines of the item that begins there: to its closing brace, or to its semicolon.
fn item(code: &[String], line: usize, column: usize) -> Range<usize> {
    let mut depth = 0_i32;
    let mut from = column;
    for (index, code) in code.iter().enumerate().skip(line) {
        for c in code[from..].chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' => depth -= 1,
                '}' if depth == 1 => return line..index + 1,
                '}' => depth -= 1,
                ';' if depth == 0 => return line..index + 1,
                _ => {}
            }
        }
        from = 0;
    }
    line..code.len()
}

/// Takes a source apart, character by character.
#[derive(Default)]
struct Reader {
    chars: Vec<char>,
    at: usize,
    code: String,
    texts: Vec<(usize, String)>,
    line: usize,
}

impl Reader {
    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('/')) => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                ('/', Some('*')) => self.comment(),
                ('"', _) => self.text(None),
                ('r' | 'b' | 'c', _) if self.raw_hashes().is_some() => {
                    let hashes = self.raw_hashes();
                    while self.peek(0) != Some('"') {
                        self.at += 1;
                    }
                    self.text(hashes);
                }
                ('\'', Some('\\')) => self.character(2),
                ('\'', Some(_)) if self.peek(2) == Some('\'') => self.character(1),
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self) {
        self.code.push(self.chars[self.at]);
        self.pass();
    }

    /// One character on; the code has as many lines as the source.
    fn pass(&mut self) {
        if self.chars[self.at] == '\n' {
            self.line += 1;
        }
        self.at += 1;
    }

    fn skip(&mut self) {
        if self.chars[self.at] == '\n' {
            self.code.push('\n');
        }
        self.pass();
    }

    fn comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.peek(0) {
            match (c, self.peek(1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.skip();
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
    }

    /// How many hashes a raw text has that begins here.
    fn raw_hashes(&self) -> Option<usize> {
        if self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let prefix = (0..2).take_while(|&ahead| matches!(self.peek(ahead), Some('r' | 'b' | 'c'))).count();
        let is_raw = (0..prefix).any(|ahead| self.peek(ahead) == Some('r'));
        let hashes = (prefix..).take_while(|&ahead| self.peek(ahead) == Some('#')).count();
        (is_raw && self.peek(prefix + hashes) == Some('"')).then_some(hashes)
    }

    /// A text from its quote on; `raw` has its number of hashes.
    fn text(&mut self, raw: Option<usize>) {
        let (line, mut text) = (self.line, String::new());
        self.keep();
        while let Some(c) = self.peek(0) {
            let closes = match raw {
                Some(hashes) => c == '"' && (1..=hashes).all(|ahead| self.peek(ahead) == Some('#')),
                None => c == '"',
            };
            if closes {
                self.keep();
                self.at += raw.unwrap_or(0);
                break;
            }
            if c == '\\' && raw.is_none() {
                text.push(c);
                self.skip();
            }
            text.extend(self.peek(0));
            self.skip();
        }
        self.texts.push((line, text));
    }

    /// `'x'` or `'\n'`: its quote, then at least so many characters, then the closing one.
    fn character(&mut self, least: usize) {
        self.at += 1 + least;
        while self.peek(0).is_some_and(|c| c != '\'') {
            self.at += 1;
        }
        self.at += 1;
        self.code.push_str("''");
    }
}

#[test]
fn texts_comments_and_characters_are_told_from_code() {
    let text = "let a = \"x { // no\\\" end\"; // { }\nlet b = r#\"{\"q\"}\"#; /* { /* { */\n*/ let c = '{'; let d: &'a str;\n#[cfg(test)]\nmod tests {\n}\nfn f() -> [u8; 2] {\n}\n";
    let file = File { path: "crates/x/src/lib.rs".into(), text: text.into() };
    let rust = Rust::read(&file);
    assert_eq!(rust.code[0], "let a = \"\"; ");
    assert_eq!(rust.code[1], "let b = \"\"; ");
    assert_eq!(rust.code[2], " let c = ''; let d: &'a str;");
    assert_eq!(rust.texts, [(0, "x { // no\\\" end".to_owned()), (1, "{\"q\"}".to_owned())]);
    assert_eq!((0..8).filter(|&line| rust.is_test(line)).collect::<Vec<_>>(), [3, 4, 5]);
    let functions: Vec<(String, usize)> = rust.functions().into_iter().map(|f| (f.name, f.lines)).collect();
    assert_eq!(functions, [("f".to_owned(), 2)]);
}
