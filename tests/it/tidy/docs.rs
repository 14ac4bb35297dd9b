//! What the documents say is so: links lead somewhere, commands, flags, targets and routes exist.

use super::rust::Rust;
use super::tree::{File, Findings, files};
use paceline_tests::binary;

fn documents() -> Vec<File> {
    files(|path| path.ends_with(".md"))
}

/// Each piece of code of a document: its line, and a line of a fenced block or what stands in backticks.
fn code(file: &File) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    let mut fenced = false;
    let mut joined = String::new();
    for (line, text) in file.lines() {
        if text.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            joined.push_str(text.trim_end_matches('\\'));
            if !text.ends_with('\\') {
                pieces.push((line, std::mem::take(&mut joined)));
            }
        } else {
            pieces.extend(text.split('`').skip(1).step_by(2).map(|piece| (line, piece.to_owned())));
        }
    }
    pieces
}

/// The words of a command line from its program on, without what a shell would take for itself.
fn words_after<'a>(piece: &'a str, program: &str) -> Option<Vec<&'a str>> {
    let words: Vec<&str> = piece.split_whitespace().collect();
    let at = words.iter().position(|word| *word == program)?;
    let ends = |word: &&str| !["|", ">", "<", "&&", ";", "&", "#"].contains(word);
    Some(words[at + 1..].iter().copied().take_while(ends).collect())
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut findings = Findings::default();
    for file in documents() {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, text) in file.lines() {
            let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")) {
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let found = if path.is_empty() { file.path.clone() } else { format!("{folder}/{path}") };
                let found = found.trim_start_matches('/');
                if !binary::root().join(found).exists() {
                    findings.add(&file, line, format_args!("{target} does not exist"));
                } else if !anchor.is_empty()
                    && !headings(&File::named(found)).iter().any(|known| known == anchor)
                {
                    findings.add(&file, line, format_args!("{found} has no heading #{anchor}"));
                }
            }
        }
    }
    findings.none("links");
}

/// Comments send their readers to documents and files, too.
#[test]
fn every_file_that_code_refers_to_exists() {
    let mut findings = Findings::default();
    for file in files(|path| [".rs", ".lua", ".toml", ".yml"].iter().any(|end| path.ends_with(end))) {
        for (line, text) in file.lines() {
            let is_path = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
            let words = text.split(|c: char| !is_path(c)).map(|word| word.trim_end_matches('.'));
            let referred = words.filter(|word| word.starts_with("docs/") || word.starts_with("lua/"));
            for word in referred.filter(|word| !binary::root().join(word).exists()) {
                findings.add(&file, line, format_args!("{word} does not exist"));
            }
        }
    }
    findings.none("references");
}

/// The anchors of a document's headings.
fn headings(file: &File) -> Vec<String> {
    let headings = file.text.lines().filter(|line| line.starts_with('#'));
    let kept = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let anchor = |line: &str| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    headings.map(|line| anchor(line).chars().filter(|c| kept(*c)).collect()).collect()
}

#[test]
fn every_documented_command_exists() {
    let mut findings = Findings::default();
    let mut looked_at = 0;
    for file in documents() {
        for (line, piece) in code(&file) {
            let Some(words) = words_after(&piece, "paceline").filter(|words| !words.is_empty()) else {
                continue;
            };
            looked_at += 1;
            if let Some(problem) = binary::misspelled(&command(&words)) {
                findings.add(&file, line, problem);
            }
        }
    }
    assert!(looked_at > 10, "the documents show commands");
    findings.none("documented commands");
}

/// Without what is a value in quotes: `'{"to": "ada"}'` may hold blanks.
fn command<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut quoted = false;
    let outside = |word: &&&str| {
        let was_quoted = quoted;
        quoted ^= word.matches('\'').count() % 2 == 1;
        !was_quoted && !word.contains('\'') && !word.contains('…')
    };
    words.iter().filter(outside).copied().collect()
}

/// The help texts teach by example, and the examples run.
#[test]
fn every_example_of_the_help_texts_exists() {
    let mut findings = Findings::default();
    let file = File::named("crates/cli/src/args.rs");
    for (begin, text) in Rust::read(&file).texts {
        for (index, example) in text.lines().enumerate() {
            // Two blanks stand before an example, and before what it is for.
            let example = example.trim_start().split("  ").next().unwrap_or_default();
            let Some(words) = words_after(example, "paceline").filter(|words| !words.is_empty()) else {
                continue;
            };
            if let Some(problem) = binary::misspelled(&command(&words)) {
                findings.add(&file, begin + index + 1, problem);
            }
        }
    }
    findings.none("examples of --help");
}

#[test]
fn every_documented_target_of_make_exists() {
    let mut findings = Findings::default();
    let makefile = File::named("Makefile");
    let targets: Vec<&str> =
        makefile.text.lines().filter_map(|line| line.split_once(": ").map(|(t, _)| t)).collect();
    for file in documents() {
        for (line, piece) in code(&file) {
            let target = words_after(&piece, "make").and_then(|words| words.first().copied());
            if let Some(target) = target.filter(|target| !targets.contains(target)) {
                findings.add(&file, line, format_args!("make has no target {target}"));
            }
        }
    }
    let readme = File::named("README.md");
    for command in ["make demo", "make test"] {
        if !readme.text.contains(command) {
            findings.add(&readme, 1, format_args!("does not name {command}"));
        }
    }
    findings.none("targets of make");
}

/// `/v1/jobs/{class}/{*key}` answers `/v1/jobs/bulk/a/b`.
fn answers(route: &str, path: &str) -> bool {
    match (route.split_once('/'), path.split_once('/')) {
        _ if route.starts_with("{*") => !path.is_empty(),
        (Some((route, routes)), Some((path, paths))) => segment(route, path) && answers(routes, paths),
        (None, None) => segment(route, path),
        _ => false,
    }
}

fn segment(route: &str, path: &str) -> bool {
    route == path || (route.starts_with('{') && !path.is_empty())
}

/// What stands before a path of our API.
const OURS: [&str; 5] = ["GET ", "POST ", "DELETE ", "127.0.0.1:8700", "localhost:8700"];

#[test]
fn every_documented_route_exists() {
    let mut findings = Findings::default();
    let routers =
        ["lib", "pages"].map(|name| Rust::read(&File::named(&format!("crates/admin/src/{name}.rs"))));
    let texts = routers.iter().flat_map(|router| &router.texts);
    let routes: Vec<&str> =
        texts.map(|(_, text)| text.as_str()).filter(|text| text.starts_with('/')).collect();
    for file in documents() {
        for (line, piece) in code(&file) {
            let is_path = |c: char| c.is_alphanumeric() || "/{}*_-:%.~".contains(c);
            // `path = "/v1/send"` is a provider's; ours follow a method or our address.
            let is_ours = |at: usize| OURS.iter().any(|before| piece[..at].ends_with(before));
            for (at, _) in piece.match_indices('/').filter(|(at, _)| is_ours(*at)) {
                let path: String = piece[at..].chars().take_while(|c| is_path(*c)).collect();
                if !routes.iter().any(|route| answers(&route[1..], &path[1..])) {
                    findings.add(&file, line, format_args!("no route answers {path}"));
                }
            }
        }
    }
    findings.none("documented routes");
}
