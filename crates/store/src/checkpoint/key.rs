//! The key of a log, and the public line that others verify with.
//!
//! Both are the one-line forms that tools for signed notes share: a name, a number that tells keys of one
//! name apart, and the key, with a plus between them. The private line lies beside the store in a file
//! of its own and nowhere else.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capsule_base::digest::Digest;
use capsule_base::limits;
use capsule_core::journal::KEY_SUFFIX;
use ed25519_dalek::{Signature as Signed, Signer as _, SigningKey, VerifyingKey};
use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::checkpoint::note::{ID_BYTES, Signature, is_note_key_name};
use crate::checkpoint::signing::run_of_origin;
use crate::checkpoint::{Checkpoint, SignedNote};
use crate::error::StoreError;
use crate::export_target::unused_path;
use crate::open::create_private_directory;
use crate::store_file::{flags, sidecar_path};

/// What stands before a private line.
const PRIVATE_PREFIX: &str = "PRIVATE+KEY+";
/// Says that a key is one of Ed25519 (C2SP signed-note, signature types).
const ED25519_TYPE: u8 = 1;
/// What a log is called whose owner gave it no name, before letters of its own key.
const DEFAULT_ORIGIN: &str = "capsule";
/// How many of these: 40 bits, so that two logs of one owner never share a name.
const DEFAULT_ORIGIN_LETTERS: usize = 8;

/// A public key with its name: who may have signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verifier {
    name: String,
    key: VerifyingKey,
}

impl Verifier {
    /// Reads a public line: `NAME+NUMBER+KEY`.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let (name, id, bytes) = parse_key_line(line)?;
        let key = VerifyingKey::from_bytes(&bytes).ok()?;
        let verifier = Self { name: name.to_owned(), key };
        (id == verifier.key_number()).then_some(verifier)
    }

    /// The key's name, which is the origin of its log.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number that tells it from other keys of that name.
    pub(super) fn key_id(&self) -> [u8; ID_BYTES] {
        let parts: [&[u8]; 4] = [self.name.as_bytes(), b"\n", &[ED25519_TYPE], self.key.as_bytes()];
        let Digest([a, b, c, d, ..]) = Digest::of_parts(&parts);
        [a, b, c, d]
    }

    /// That number as it is written.
    #[must_use]
    pub fn key_number(&self) -> String {
        format!("{:08x}", u32::from_be_bytes(self.key_id()))
    }

    /// Whether it signed these bytes. Keys and signatures that fit more than one text fit none.
    pub(super) fn has_signed(&self, text: &[u8], signature: &[u8]) -> bool {
        let signature = Signed::from_slice(signature);
        signature.is_ok_and(|signature| self.key.verify_strict(text, &signature).is_ok())
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = STANDARD.encode([&[ED25519_TYPE], self.key.as_bytes().as_slice()].concat());
        write!(f, "{}+{}+{key}", self.name, self.key_number())
    }
}

/// The name, the number and the bytes of a line.
fn parse_key_line(line: &str) -> Option<(&str, &str, Zeroizing<[u8; 32]>)> {
    let (name, rest) = line.split_once('+')?;
    let (id, key) = rest.split_once('+')?;
    let key = Zeroizing::new(STANDARD.decode(key).ok()?);
    let (kind, bytes) = key.split_first()?;
    let bytes = Zeroizing::new(<[u8; 32]>::try_from(bytes).ok()?);
    (is_note_key_name(name) && *kind == ED25519_TYPE).then_some((name, id, bytes))
}

/// The public lines of a file; empty lines and those that begin with `#` are for people.
///
/// # Errors
/// When it cannot be read, or holds a line that is none, or none at all.
pub fn read_keys(path: &Path) -> Result<Vec<Verifier>, StoreError> {
    let failed = |why: String| StoreError::Key { path: path.to_owned(), why, suggestion: None };
    let text = read(File::open(path).map_err(|error| failed(error.to_string()))?)
        .map_err(|error| failed(error.to_string()))?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let keys: Result<Vec<_>, _> = lines
        .map(|(at, line)| {
            let why = match line.starts_with(PRIVATE_PREFIX) {
                true => "is a private key; `capsule init` prints the public line",
                false => "is no public key: `NAME+NUMBER+KEY`",
            };
            Verifier::parse(line).ok_or_else(|| failed(format!("line {at} {why}")))
        })
        .collect();
    match keys? {
        keys if keys.is_empty() => Err(failed("there is no public key in it".into())),
        keys => Ok(keys),
    }
}

/// The text of a file of keys.
fn read(file: File) -> std::io::Result<Zeroizing<String>> {
    let most = u64::try_from(limits::KEY_FILE_BYTES).unwrap_or(u64::MAX);
    let mut text = Zeroizing::new(String::new());
    file.take(most + 1).read_to_string(&mut text)?;
    match text.len() > limits::KEY_FILE_BYTES {
        true => Err(std::io::Error::new(ErrorKind::FileTooLarge, "it is too large")),
        false => Ok(text),
    }
}

/// The key of a log.
pub struct Signer {
    key: SigningKey,
    verifier: Verifier,
}

impl Signer {
    /// The key that lies beside a store, if there is one.
    ///
    /// # Errors
    /// When one is there and cannot be used, or others may read it.
    pub fn load(store: &Path) -> Result<Option<Self>, StoreError> {
        let path = key_path(store);
        let failed = |why: String| StoreError::Key { path: path.clone(), why, suggestion: None };
        let flags = flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let found = file.metadata().map_err(|error| failed(error.to_string()))?;
        if !found.is_file() {
            return Err(failed("it is not a file".into()));
        }
        if found.mode() & 0o077 != 0 {
            let why = format!("others may read or change it (mode {:04o})", found.mode() & 0o7777);
            let suggestion = format!(
                "`chmod 600 {0}` if nobody else has read or changed it; else put `{0}` away, and `capsule init` \
                 makes another key",
                path.display()
            );
            return Err(StoreError::Key { path: path.clone(), why, suggestion: Some(suggestion) });
        }
        let text = read(file).map_err(|error| failed(error.to_string()))?;
        let signer = Self::parse(text.trim_end_matches('\n'));
        signer.map(Some).ok_or_else(|| StoreError::Key {
            why: "it is not a private key of this form".into(),
            suggestion: Some(format!(
                "put `{}` away or bring back the key that was there; without one, `capsule init` makes another",
                path.display()
            )),
            path: path.clone(),
        })
    }

    /// Makes a key and puts it beside a store, where none may be yet. Without an origin the log is called
    /// by its key.
    ///
    /// # Errors
    /// When there is one, the name is none, or it cannot be written.
    pub fn create(store: &Path, origin: Option<&str>) -> Result<Self, StoreError> {
        let path = key_path(store);
        let failed = |why: String| StoreError::Key { path: path.clone(), why, suggestion: None };
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut()).map_err(|error| failed(error.to_string()))?;
        let key = SigningKey::from_bytes(&seed);
        let name = match origin {
            Some(name) if is_key_name(name) => name.to_owned(),
            Some(_) => return Err(failed("no log may be called so".into())),
            None => default_origin(&key.verifying_key()),
        };
        let signer = Self::of(name, key);
        write_new(&path, &signer.line()).map_err(|error| failed(error.to_string()))?;
        Ok(signer)
    }

    /// The key beside a store, which is made where there is none, and whether it was made here. Where several
    /// processes make one at a time, one of them does, and the others take it.
    ///
    /// # Errors
    /// When one is there and cannot be used, the name is none, or it cannot be written.
    pub fn take_or_make(store: &Path, origin: Option<&str>) -> Result<(Self, bool), StoreError> {
        if let Some(signer) = Self::load(store)? {
            return Ok((signer, false));
        }
        match (Self::create(store, origin), Self::load(store)) {
            (Ok(signer), _) => Ok((signer, true)),
            (Err(_), Ok(Some(signer))) => Ok((signer, false)),
            (Err(error), _) => Err(error),
        }
    }

    fn of(name: String, key: SigningKey) -> Self {
        let verifier = Verifier { name, key: key.verifying_key() };
        Self { key, verifier }
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, id, seed) = parse_key_line(line.strip_prefix(PRIVATE_PREFIX)?)?;
        let signer = Self::of(name.to_owned(), SigningKey::from_bytes(&seed));
        (is_key_name(name) && id == signer.verifier.key_number()).then_some(signer)
    }

    fn line(&self) -> Zeroizing<String> {
        let Verifier { name, .. } = &self.verifier;
        let bytes = Zeroizing::new([&[ED25519_TYPE], self.key.as_bytes().as_slice()].concat());
        let key = Zeroizing::new(STANDARD.encode(bytes.as_slice()));
        Zeroizing::new(format!("{PRIVATE_PREFIX}{name}+{}+{}\n", self.verifier.key_number(), *key))
    }

    /// The public key.
    #[must_use]
    pub const fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Signs a checkpoint.
    #[must_use]
    pub fn sign(&self, checkpoint: &Checkpoint) -> SignedNote {
        let text = checkpoint.text();
        let bytes = self.key.sign(text.as_bytes()).to_bytes().to_vec();
        let (name, id) = (self.verifier.name.clone(), self.verifier.key_id());
        SignedNote { text, signatures: vec![Signature { name, id, bytes }] }
    }
}

/// A key is not shown.
impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.verifier)
    }
}

/// Where the key of a store lies: beside the file that a link leads to, as SQLite has it.
fn key_path(store: &Path) -> PathBuf {
    sidecar_path(&store.canonicalize().unwrap_or_else(|_| store.to_owned()), KEY_SUFFIX)
}

/// Whether a log may be called so: what is safe in a line, a folder's name and an address.
#[must_use]
pub fn is_origin(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte);
    !name.is_empty() && name.len() <= limits::ORIGIN_BYTES && name.bytes().all(is_plain)
}

/// Whether a key may be called so: as a log, but not as the tree of one run that was written out.
#[must_use]
pub fn is_key_name(name: &str) -> bool {
    is_origin(name) && run_of_origin(name).is_none()
}

/// What a log is called by its key alone. Nothing of the machine is in it: names are for publishing.
fn default_origin(key: &VerifyingKey) -> String {
    let digest = Digest::of(key.as_bytes()).to_string();
    format!("{DEFAULT_ORIGIN}/{}", digest.get(..DEFAULT_ORIGIN_LETTERS).unwrap_or(""))
}

/// Writes a file that is not there yet: whole, or not at all.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    create_private_directory(folder)?;
    let new = unused_path(path)?;
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    let written = written.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // A link, which takes nobody's place.
        fs::hard_link(&new, path)
    });
    // A second name of a key is a second place to lose it from.
    let removed = fs::remove_file(&new);
    written.and(removed)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::checkpoint::SignatureCheck;

    fn store() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("a/store.db");
        (folder, store)
    }

    fn checkpoint(origin: &str) -> Checkpoint {
        Checkpoint { origin: origin.into(), size: 7, root: Digest::of(b"root") }
    }

    #[test]
    fn a_key_is_made_once_and_read_back() {
        let (_folder, store) = store();
        assert!(Signer::load(&store).unwrap().is_none());
        let made = Signer::create(&store, Some("acme/laptop-3")).unwrap();
        let read = Signer::load(&store).unwrap().unwrap();
        assert_eq!(made.verifier(), read.verifier());
        assert_eq!(read.verifier().name(), "acme/laptop-3");
        let path = sidecar_path(&store, KEY_SUFFIX);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(store.parent().unwrap()).unwrap().count(), 1);
        let before = fs::read(&path).unwrap();
        assert!(Signer::create(&store, None).is_err());
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn logs_without_a_name_are_called_by_their_keys() {
        let names: Vec<String> = (0..2)
            .map(|_| Signer::create(&store().1, None).unwrap().verifier().name().to_owned())
            .collect();
        assert!(names.iter().all(|name| name.starts_with("capsule/") && is_origin(name)));
        assert_ne!(names.first(), names.last());
        let run = format!("acme/run/{}", capsule_core::id::RunId::from_bits([7; 10]));
        for name in
            [run.as_str(), "", "a b", "a+b", "a\nb", "ä", &"x".repeat(limits::ORIGIN_BYTES + 1)]
        {
            assert!(Signer::create(&store().1, Some(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_key_that_others_could_have_is_refused() {
        let (_folder, store) = store();
        Signer::create(&store, None).unwrap();
        let path = sidecar_path(&store, KEY_SUFFIX);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Signer::load(&store).unwrap_err().to_string();
        assert!(error.contains("0640"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        let renamed = whole.replacen("capsule", "capsula", 1);
        let cut = whole.replacen("PRIVATE", "RIVATE", 1);
        for other in ["", "PRIVATE+KEY+\n", &renamed, &cut] {
            fs::write(&path, other).unwrap();
            assert!(Signer::load(&store).is_err(), "{other:?}");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(Signer::load(&store).is_err());
    }

    /// A public line that other implementations of signed notes are tested with.
    #[test]
    fn public_lines_are_those_of_other_tools() {
        let line = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        assert_eq!(Verifier::parse(line).unwrap().to_string(), line);
        for other in [
            line.replace("c74f20a3", "c74f20a4"),
            line.replace("c74f20a3", "C74F20A3"),
            line.replace("Peter", "Paula"),
            line.replace("+AR", "+AB"),
            line.replace("10TW", "10TX"),
        ] {
            assert_eq!(Verifier::parse(&other), None, "{other}");
        }
    }

    /// G5: a note is its signer's, word by word, and nobody else's.
    #[test]
    fn notes_are_known_by_their_key_alone() {
        let signer = Signer::create(&store().1, Some("acme/log")).unwrap();
        let public = Verifier::parse(&signer.verifier().to_string()).unwrap();
        let note = signer.sign(&checkpoint("acme/log"));
        assert_eq!(SignedNote::parse(&note.to_string()), Some(note.clone()));
        assert_eq!(note.checkpoint(), Some(checkpoint("acme/log")));
        assert_eq!(note.verify(&public), SignatureCheck::Valid);
        let twin = Signer::create(&store().1, Some("acme/log")).unwrap();
        assert_eq!(note.verify(twin.verifier()), SignatureCheck::Absent);
        let changed = note.to_string().replace("\n7\n", "\n8\n");
        assert_eq!(SignedNote::parse(&changed).unwrap().verify(&public), SignatureCheck::Invalid);
        // Somebody else's signature under this key's name and number.
        let mut forged = twin.sign(&checkpoint("acme/log"));
        forged.signatures.iter_mut().for_each(|signature| signature.id = public.key_id());
        assert_eq!(forged.verify(&public), SignatureCheck::Invalid);
        // A second signature of a witness changes nothing.
        let mut both = note;
        both.signatures.extend(twin.sign(&checkpoint("acme/log")).signatures);
        assert_eq!(
            SignedNote::parse(&both.to_string()).unwrap().verify(&public),
            SignatureCheck::Valid
        );
    }

    #[test]
    fn files_of_keys_say_what_is_wrong_with_them() {
        let (folder, store) = store();
        let signer = Signer::create(&store, None).unwrap();
        let path = folder.path().join("keys");
        let line = signer.verifier().to_string();
        fs::write(&path, format!("# ours\n\n  {line}  \n")).unwrap();
        assert_eq!(read_keys(&path).unwrap(), [signer.verifier().clone()]);
        let private = fs::read_to_string(sidecar_path(&store, KEY_SUFFIX)).unwrap();
        for (text, what) in [
            ("# none\n", "no public key"),
            (private.as_str(), "line 1 is a private key"),
            (&format!("{line}\n{}", line.replace("capsule/", "capsulo/")), "line 2 is no public"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read_keys(&path).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            assert!(!error.contains("PRIVATE"), "{error}");
        }
    }
}
