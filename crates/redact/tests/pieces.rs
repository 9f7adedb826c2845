//! Texts of which only a part is delivered, and values with texts in them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests fail by panics"
)]

use capsule_redact::{
    CustomPattern, MaskingStream, Redactor, Secret, TextPiece, credential_kinds, excerpt,
    holds_mask,
};
use serde_json::json;
use zeroize::Zeroizing;

fn clean(text: &str) -> String {
    Redactor::builtin().text(text, &mut 0).into_owned()
}

/// What a text becomes that comes in pieces of this size.
fn in_pieces(redactor: &Redactor, text: &str, size: usize) -> String {
    let mut stream = MaskingStream::new(redactor.clone());
    let mut out = Vec::new();
    text.as_bytes().chunks(size).for_each(|piece| stream.push(piece, &mut out));
    stream.finish(false, &mut out);
    String::from_utf8(out).unwrap()
}

/// A token of a form that has no place to stand in.
fn token() -> String {
    format!("ghp_{}", "aB3".repeat(12))
}

/// The rules are as many as they have to be, and each is one of its own.
#[test]
fn the_kinds_of_credential_are_many() {
    let all: Vec<_> = credential_kinds().collect();
    assert!(all.len() >= 150, "{}", all.len());
    for (at, own) in all.iter().enumerate() {
        assert!(
            all[..at].iter().all(|other| other.pattern != own.pattern),
            "{} twice",
            own.pattern
        );
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(own.name.chars().all(plain) && !own.description.is_empty(), "{}", own.name);
    }
    println!("{} kinds", all.len());
}

#[test]
fn excerpts_cut_no_credential_in_two() {
    let secret = token();
    let text = format!("a b/{secret}/c");
    for most in 0..text.len() {
        let shown = excerpt(&text, most);
        let whole = shown.contains(&secret) || !shown.contains("gh");
        assert!(whole && shown.ends_with('…'), "{most}: {shown}");
    }
    assert_eq!(excerpt(&text, text.len()), text);
}

#[test]
fn private_keys_go_whole() {
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ\nQyNTUxOQAAACDt\n\
               -----END OPENSSH PRIVATE KEY-----";
    let masked = clean(&format!("before\n{key}\nafter"));
    assert!(masked.starts_with("before\n«key:pem:") && masked.ends_with("»\nafter"), "{masked}");
    let cut = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA";
    assert!(!clean(cut).contains("MIIE"));
    assert!(holds_mask(masked.as_bytes()));
    assert!(!holds_mask("« quoted »".as_bytes()));
    assert!(holds_mask(format!("« quoted » {masked}").as_bytes()));
}

/// G10: whatever part of a text is delivered, no part of a credential in it is.
#[test]
fn no_window_shows_a_part_of_a_credential() {
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "qRs7".repeat(40)
    );
    let text = format!("before {} between\n{key}\nafter", token());
    let redactor = Redactor::builtin();
    let secret = |shown: &str| shown.contains("aB3") || shown.contains("Rs7");
    for start in 0..text.len() {
        for end in start..=text.len() {
            let piece = TextPiece {
                bytes: text.as_bytes().to_vec(),
                window: start..end,
                cut_before: true,
                cut_after: true,
            };
            let mut masked = 0;
            let shown = redactor.piece(&piece, &mut masked).into_owned();
            let shown = String::from_utf8(shown).unwrap();
            assert!(!secret(&shown), "{start}..{end}: {shown}");
            assert_eq!(masked as usize, shown.matches('«').count(), "{start}..{end}");
        }
    }
    // Without anything around: the bytes themselves are cut.
    let start_of_key = text.find("-----BEGIN").unwrap();
    for cut in 0..text.len() {
        let (one, other) = text.as_bytes().split_at(cut);
        let one = TextPiece::beginning(one.to_vec(), true);
        let shown = redactor.piece(&one, &mut 0).into_owned();
        assert!(!secret(&String::from_utf8(shown).unwrap()), "..{cut}");
        if cut > start_of_key {
            let other = TextPiece { cut_before: true, ..TextPiece::from(other.to_vec()) };
            let shown = redactor.piece(&other, &mut 0).into_owned();
            let ended = cut > text.len() - "-----END RSA PRIVATE KEY-----\nafter".len();
            assert!(ended || !secret(&String::from_utf8(shown).unwrap()), "{cut}..");
        }
    }
}

#[test]
fn values_are_masked_to_the_leaves() {
    let token = token();
    let value = json!({ "list": [{ "text": token }], "n": 1, (token.as_str()): true });
    let mut masked = 0;
    let clean = Redactor::builtin().value(value, &mut masked);
    assert_eq!(masked, 2);
    assert!(clean["list"][0]["text"].as_str().unwrap().starts_with("«token:github:40:"));
    assert!(!clean.to_string().contains(&token));
    // What a key says of its text, and one argument of the next.
    let value =
        json!({ "password": "Tr0ub4dor&3", "argv": ["mysql", "-u", "root", "-pTr0ub4dor3"] });
    let clean = Redactor::builtin().value(value, &mut masked);
    assert!(!clean.to_string().contains("Tr0ub"), "{clean}");
    assert_eq!(clean["argv"][2], "root");
}

/// A mask in a URL is encoded, and stays the mask that it is.
#[test]
fn encoded_masks_stay() {
    for text in [
        "https://x.example/q?t=%C2%ABtoken:github:40:ba94%C2%BB",
        "https://x.example/q?t=%c2%abtoken%3agithub%3a40%3aba94%c2%bb&token=%C2%ABpassword:url:9%C2%BB",
        "%C2%ABpassword:setting:12%C2%BB",
    ] {
        assert_eq!(clean(text), text);
    }
    let other = "t=%C2%ABpassword:Tr0ub4dor&3%C2%BB";
    assert!(clean(other).contains("%C2%ABpassword:«password:"), "{}", clean(other));
}

/// What a policy adds: a value that is known, in every form that programs make of it, and a pattern.
#[test]
fn what_a_policy_knows_is_masked() {
    let value = "correct=horse/9";
    let secret = Secret::new("VAULT", Zeroizing::new(value.into())).unwrap();
    let custom = CustomPattern::parse("acme-token", "acme_[a-z]{8}").unwrap();
    let redactor = Redactor::with(&[secret], &[custom]);
    let text = format!(
        "raw {value} url correct%3Dhorse%2F9 hex 636f72726563743d686f7273652f39 base64 \
         eDpjb3JyZWN0PWhvcnNlLzk= and acme_abcdefgh, not acme_abc"
    );
    let whole = redactor.text(&text, &mut 0).into_owned();
    assert!(!whole.contains("horse") && !whole.contains("636f72") && !whole.contains("PWhv"));
    assert_eq!(whole.matches("«secret:VAULT:").count(), 4, "{whole}");
    assert!(whole.contains("and «pattern:acme-token:13», not acme_abc"), "{whole}");
    assert_eq!(redactor.text(&whole, &mut 0), whole);
    let greedy =
        Redactor::with(&[], &[CustomPattern::parse("any", "[a-z]{5,9}:[a-z0-9]{2,9}").unwrap()]);
    let once = greedy.text("word:other and token:github", &mut 0).into_owned();
    assert_eq!(greedy.text(&once, &mut 0), once);
    for size in 1..40 {
        assert_eq!(in_pieces(&redactor, &text, size), whole, "pieces of {size}");
    }
}

/// G10: where a rule's mask ends inside of a value that the policy knows, its rest is masked as well,
/// and neither a value nor what a pattern finds hides in a mask that somebody wrote.
#[test]
fn no_rest_of_a_known_value_stays() {
    let value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a/and-its-rest";
    let secret = Secret::new("VAULT", Zeroizing::new(value.into())).unwrap();
    let custom = CustomPattern::parse("acme", "acme_[a-z]{8}").unwrap();
    let greedy = CustomPattern::parse("greedy", "acme[^ ]{4,40}").unwrap();
    let short = CustomPattern::parse("short", "key=[^ ]{4,8}").unwrap();
    let redactor = Redactor::with(&[secret], &[custom, greedy, short]);
    for text in [
        "key=ghp_16C7e42F292c6912E7710c838347Ae178B4a x".into(),
        format!("x {value} y"),
        format!("x_{value} y"),
        format!("password=abc1ghi,{value}"),
        format!("https://user:pw1{value}@example.org/{value}"),
        format!("acme_abcdefgh{value}"),
        "acme_abcdeghp_16C7e42F292c6912E7710c838347Ae178B4a/and-its-rest".into(),
        format!("«secret:{value}:1»"),
        "«secret:acme_abcdefgh:1»".into(),
        format!("{value}token: "),
        format!("{value}{value}password=x"),
        "«pattern:acme:9»acme_abcdefgh".into(),
        "«pattern:acme:12»,acme_abcdefgh".into(),
        "acme_abcdefghghp_16C7e42F292c6912E7710c838347Ae178B4a x".into(),
    ] {
        let whole = redactor.text(&text, &mut 0).into_owned();
        let shows = ["and-its-rest", "16C7e42F", "acme_abc"].iter().any(|own| whole.contains(own));
        assert!(!shows, "{text} -> {whole}");
        assert_eq!(redactor.text(&whole, &mut 0), whole);
        for size in 1..text.len() {
            assert_eq!(in_pieces(&redactor, &text, size), whole, "pieces of {size}");
        }
    }
}

/// G10: what a pattern of a policy finds ends no other secret too early, and its own masks are masks.
#[test]
fn patterns_and_rules_meet() {
    let pattern = |id: &str, text: &str| CustomPattern::parse(id, text).unwrap();
    let patterns = [
        pattern("AcmeKey1", "Acme[A-Za-z0-9]{4,40}"),
        pattern("head", "key: -----BEGIN [A-Z ]{4,40}-----"),
        pattern("lead", "lead=sk-ant-[a-z]{2}"),
    ];
    let secret = Secret::new("SELF", Zeroizing::new("Ab1xAb1xAb".into())).unwrap();
    let redactor = Redactor::with(&[secret], &patterns);
    let once = redactor.text("x AcmeZ9k2mQ7p y", &mut 0).into_owned();
    assert_eq!(once, "x «pattern:AcmeKey1:12» y");
    assert_eq!(redactor.text(&once, &mut 0), once);
    let body = "qRs7TuVw".repeat(20);
    let key =
        format!("key: -----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----");
    assert!(!redactor.text(&key, &mut 0).contains("qRs7"));
    let long = format!("lead=sk-ant-ab{}", "aZ9kQ7mB".repeat(2_500));
    assert!(!redactor.text(&long, &mut 0).contains("aZ9k"));
    // A value that goes on with itself is masked piece by piece, and nothing is held back for it.
    let mut stream = MaskingStream::new(redactor.clone());
    let (mut out, mut most) = (Vec::new(), 0);
    for _ in 0..256 {
        stream.push("Ab1x".repeat(256).as_bytes(), &mut out);
        most = most.max(stream.held());
    }
    stream.finish(false, &mut out);
    assert!(most <= 1 << 16, "{most}");
    assert!(!String::from_utf8(out).unwrap().contains("Ab1xAb1xAb"));
}

/// A secret whose value is a word of masks leaves them alone; what masks twice masks once.
#[test]
fn a_secret_may_be_a_word_of_masks() {
    let secret = Secret::new("DB", Zeroizing::new("password".into())).unwrap();
    let redactor = Redactor::with(&[secret], &[]);
    let once = redactor.text("DB_PASSWORD=Tr0ub4dor&3 and a password", &mut 0).into_owned();
    assert!(once.ends_with("and a «secret:DB:8»") && !once.contains("Tr0ub"), "{once}");
    assert_eq!(redactor.text(&once, &mut 0), once);
}

/// A pattern whose one end can be told only later holds back what it needs, and no more.
#[test]
fn patterns_see_across_pieces() {
    let custom = CustomPattern::parse("long", "begin[a-z]{0,20}end|middle").unwrap();
    let redactor = Redactor::with(&[], &[custom]);
    for text in ["beginmiddleend x", "beginmiddlexxx middle", "middlebeginxend", "beginmiddle"] {
        let whole = redactor.text(text, &mut 0).into_owned();
        for size in 1..text.len() {
            assert_eq!(in_pieces(&redactor, text, size), whole, "{text} in pieces of {size}");
        }
    }
}

/// A stream holds back a bounded part, whatever comes.
#[test]
fn what_is_held_back_is_bounded() {
    let hostile = [
        "a".repeat(1 << 16),
        "password=".repeat(1 << 13),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}", "QUJD\n".repeat(1 << 14)),
        format!("token: {}", "x9Y".repeat(1 << 15)),
        "\"".repeat(1 << 16),
        format!("curl -u {}", "\\\n -H x".repeat(1 << 13)),
    ];
    let forms = ["acme_[a-z0-9]{4,20}", "acme_pw=[a-z0-9]{8,20}"];
    let own = forms.map(|form| CustomPattern::parse("own", form).unwrap());
    let plain = "nothing to see here\n".repeat(1 << 14);
    let over = [
        format!("curl -u admin:hunter2hunter x\n{plain}"),
        format!("acme_pw=hunter2hunter\n{plain}"),
        format!("curl acme_host1 -u admin:hunter2hunter x\n{plain}"),
    ];
    let each = hostile.iter().chain(&over);
    let redactors = [Redactor::builtin(), Redactor::with(&[], &own)];
    for (text, redactor) in each.flat_map(|text| redactors.iter().map(move |own| (text, own))) {
        let mut stream = MaskingStream::new(redactor.clone());
        let (mut given, mut gone, mut most) = (0, 0, 0);
        for piece in text.as_bytes().chunks(4096) {
            let mut out = Vec::new();
            stream.push(piece, &mut out);
            given += piece.len();
            gone += out.len();
            most = most.max(stream.held());
        }
        let begins = text.get(..12).unwrap();
        assert!(most <= 1 << 17, "{begins}..: {most} bytes are held back of {given}, {gone} gone");
    }
}

/// What was found behind a mask is masked also where the rest of the command line has yet to come.
#[test]
fn what_was_found_is_kept_while_more_is_waited_for() {
    let redactor = Redactor::builtin();
    let text = "curl -uDB_PASSWORD=Pr0ub4y\": \"a1B2cIN 3D4e5F6\": tokenKey\" B2ca0:\"3D4e5F6a7B8c& 9D0\"} a\n";
    let whole = clean(text);
    assert!(!whole.contains("Pr0ub4y") && !whole.contains("a1B2cIN"), "{whole}");
    for size in 1..text.len() {
        assert_eq!(in_pieces(&redactor, text, size), whole, "in pieces of {size}");
    }
}

/// What a policy's pattern finds hides no other secret: not what is told from before it, not what is told from
/// inside of it, and no rest of what begins in it; also where the one comes and the other has not come yet.
#[test]
fn a_pattern_hides_no_other_secret() {
    let forms = [
        "acme_[a-z0-9]{4,20}|u:[a-z]{4,8}",
        "acct:[0-9]{4}",
        "[0-9]{16}",
        "AKIA[A-Z0-9]{16} [a-z]{8}",
    ];
    let patterns: Vec<CustomPattern> =
        forms.iter().map(|form| CustomPattern::parse("own", form).unwrap()).collect();
    let redactor = Redactor::with(&[], &patterns);
    let (password, answer) = ("hunter2hunter", "6629fae49393a05397450978507c4ef1");
    let key = "-----BEGIN RSA PRIVATE KEY-----\n".to_owned()
        + &"b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABlwAAAAdz\n".repeat(1 << 11);
    let begins = CustomPattern::parse("own", "key: -----BEGIN [A-Z ]{4,40}-----").unwrap();
    let masked = Redactor::with(&[], &[begins]).text(&format!("key: {key}"), &mut 0).into_owned();
    assert!(!masked.contains("b3Blb"), "{} bytes", masked.len());
    for text in [
        format!("curl acme_host1/ -u admin:{password} x\n"),
        format!("Authorization: Digest username=\"acme_user7\", response=\"{answer}\"\n"),
        format!("curl -u admin_u:{password} x\n"),
        format!("AKIA2E0A8F3B244C9986 password={password}\n"),
        "acct:1234567812345678\n".into(),
    ] {
        let whole = redactor.text(&text, &mut 0).into_owned();
        assert!(whole.contains("«pattern:own:"), "{whole}");
        let shown = whole.contains("unter") || whole.contains(answer) || whole.contains("5678");
        assert!(!shown, "{whole}");
        for size in 1..text.len() {
            assert_eq!(in_pieces(&redactor, &text, size), whole, "in pieces of {size}");
        }
    }
    // What looks back as far as the finding sees it, or its mask, in a stream as in the whole.
    for filler in 90..150 {
        let filler = "x".repeat(filler);
        let text = format!("acme_host1.{filler}:5432:db:admin:{password}\n");
        let whole = redactor.text(&text, &mut 0).into_owned();
        assert_eq!(in_pieces(&redactor, &text, 1), whole);
    }
}
