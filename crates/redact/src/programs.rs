//! Programs whose command lines take passwords by options that do not say so, as a table.

/// How a password is given to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// In the same word: `-pSECRET`.
    Attached,
    /// In the next word.
    Next,
    /// In either.
    Either,
    /// In the word behind one that begins so.
    Behind,
    /// In either, behind a name and a colon.
    User,
    /// In the next word, behind a name and this sign.
    NextUser(u8),
    /// In the next word, behind `pass:`.
    Scheme,
    /// In the next word, if it looks random.
    Random,
}

/// A program, and its options. An empty option stands for words that are none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    /// How its command lines begin that hold one, where its name stands in many other places.
    pub(super) seen: Option<&'static str>,
    /// The word behind its name without which nothing holds.
    pub(super) only: &'static str,
    pub(super) flags: &'static [(&'static str, Taken)],
}

const fn program(
    name: &'static str,
    only: &'static str,
    flags: &'static [(&'static str, Taken)],
) -> Program {
    Program { name, seen: None, only, flags }
}

const fn seen(
    name: &'static str,
    beginning: &'static str,
    flags: &'static [(&'static str, Taken)],
) -> Program {
    Program { name, seen: Some(beginning), only: "", flags }
}

use Taken::{Attached, Behind, Either, Next, NextUser, Random, Scheme, User};

/// Source: the pages of the manual of each.
pub(super) const PROGRAMS: &[Program] = &[
    program("mysql", "", &[("-p", Attached)]),
    program("mysqldump", "", &[("-p", Attached)]),
    program("mysqladmin", "", &[("-p", Attached)]),
    program("mysqlimport", "", &[("-p", Attached)]),
    program("mariadb", "", &[("-p", Attached)]),
    program("mariadb-dump", "", &[("-p", Attached)]),
    program("sshpass", "", &[("-p", Either)]),
    program("curl", "", &[("-u", User), ("--user", User), ("--proxy-user", User), ("-U", User)]),
    seen("http", "http -", &[("-a", User), ("--auth", User)]),
    seen("https", "https -", &[("-a", User), ("--auth", User)]),
    program("redis-cli", "", &[("-a", Next), ("--pass", Next)]),
    program("mongo", "", &[("-p", Next)]),
    program("mongosh", "", &[("-p", Next)]),
    program("mongodump", "", &[("-p", Next)]),
    program("mongorestore", "", &[("-p", Next)]),
    program("docker", "login", &[("-p", Either)]),
    program("podman", "login", &[("-p", Either)]),
    program("nerdctl", "login", &[("-p", Either)]),
    program("buildah", "", &[("--creds", User), ("-p", Either)]),
    program("skopeo", "", &[("--src-creds", User), ("--dest-creds", User), ("--creds", User)]),
    program("helm", "login", &[("-p", Next)]),
    program("oras", "login", &[("-p", Next)]),
    program("az", "login", &[("-p", Next)]),
    program("twine", "upload", &[("-p", Next)]),
    program(
        "openssl",
        "",
        &[("-pass", Scheme), ("-passin", Scheme), ("-passout", Scheme), ("-k", Next)],
    ),
    program("zip", "", &[("-P", Either)]),
    program("unzip", "", &[("-P", Either)]),
    program("7z", "", &[("-p", Attached)]),
    program("7za", "", &[("-p", Attached)]),
    program("ssh-keygen", "", &[("-N", Next), ("-P", Next)]),
    program("sqlcmd", "", &[("-P", Either)]),
    program("bcp", "", &[("-P", Either)]),
    program("isql", "", &[("-P", Either)]),
    program("sqlplus", "", &[("", NextUser(b'/'))]),
    program("ldapsearch", "", &[("-w", Next)]),
    program("ldapmodify", "", &[("-w", Next)]),
    program("ldapadd", "", &[("-w", Next)]),
    program("htpasswd", "", &[("", Random)]),
    program("smbclient", "", &[("-U", NextUser(b'%'))]),
    program("lftp", "", &[("-u", NextUser(b','))]),
    program("keytool", "", &[("-storepass", Next), ("-keypass", Next)]),
    program("snmpwalk", "", &[("-c", Next)]),
    program("snmpget", "", &[("-c", Next)]),
    program("ipmitool", "", &[("-P", Next)]),
    program("xfreerdp", "", &[("/p:", Attached)]),
    program("cmdkey", "", &[("/pass:", Attached)]),
    program("net", "use", &[("/user:", Behind), ("/USER:", Behind)]),
    program("rabbitmqctl", "", &[("", Random)]),
    program("wandb", "login", &[("", Random)]),
    program("vault", "login", &[("", Random)]),
    program("netlify", "", &[("--auth", Next)]),
    program("stats", "auth", &[("", NextUser(b':'))]),
];
