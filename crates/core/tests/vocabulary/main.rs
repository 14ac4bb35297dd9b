//! The corpus: what vendors are documented to answer, and what each answer must mean. One file per vendor, and one
//! per protocol for the tables without a rule.

mod corpus;
mod failures;

use corpus::{Against, Corpus};
use paceline_core::preset;

/// Expected values are written down from the vendors' pages and the standards, not from the program.
macro_rules! corpora {
    ($($name:ident),*) => {
        const CORPORA: [(&str, &str); [$(stringify!($name)),*].len()] =
            [$((stringify!($name), include_str!(concat!("../corpus/", stringify!($name), ".toml")))),*];

        $(#[test]
        fn $name() {
            let text = include_str!(concat!("../corpus/", stringify!($name), ".toml"));
            Corpus::read(text).check(Against::named(stringify!($name)));
        })*
    };
}

corpora!(
    http,
    smpp,
    link,
    apns,
    aws_ses_v2,
    aws_sns,
    bird,
    fcm,
    infobip,
    mailgun,
    postmark,
    resend,
    sendgrid,
    sinch,
    slack,
    twilio_messaging,
    vonage_sms,
    whatsapp_cloud
);

#[test]
fn there_are_at_least_300_answers_and_every_vendor_has_some() {
    let counts = CORPORA.map(|(_, text)| Corpus::read(text).answers.len());
    assert!(counts.iter().sum::<usize>() >= 300, "{counts:?}");
    let has_corpus = |name: &str| CORPORA.iter().any(|(corpus, _)| *corpus == name);
    assert!(preset::all().iter().all(|preset| has_corpus(&preset.name)));
}

/// A rule that no answer fires is a rule that nobody has seen work.
#[test]
fn every_rule_of_every_preset_is_fired_by_some_answer() {
    for preset in preset::all() {
        let (_, text) = CORPORA.iter().find(|(name, _)| *name == preset.name).unwrap();
        let fired: Vec<String> = Corpus::read(text).answers.into_iter().map(|answer| answer.rule).collect();
        for rule in preset.layer().rules() {
            let name = format!("preset:{}:{}", preset.name, rule.name());
            assert!(fired.contains(&name), "{name}");
        }
    }
}
